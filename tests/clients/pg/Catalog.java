import java.lang.reflect.*;
import java.sql.*;
import java.util.*;

/** Prints JDBC's DatabaseMetaData of the tables t and other. */
public class Catalog {
  static void print(String name, ResultSet rows, String... columns) throws SQLException {
    try (rows) {
      System.out.println(name);
      while (rows.next()) {
        List<String> values = new ArrayList<>();
        for (String column : columns) values.add(rows.getString(column));
        System.out.println("  " + String.join(" ", values));
      }
    }
  }

  /** Without arguments: only loads the driver, to test that it is available. */
  public static void main(String[] args) throws Exception {
    Class.forName("org.postgresql.Driver");
    if (args.length == 0) return;
    String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/qdb";
    try (Connection connection = DriverManager.getConnection(url, "admin", "quest")) {
      DatabaseMetaData about = connection.getMetaData();
      print("catalogs", about.getCatalogs(), "TABLE_CAT");
      print("schemas", about.getSchemas(), "TABLE_SCHEM");
      print("schemas p%", about.getSchemas(null, "pub%"), "TABLE_SCHEM");
      String[] types = {"TABLE", "VIEW"};
      print("tables", about.getTables(null, null, "%", types), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE");
      print("tables t", about.getTables(null, "public", "t", null), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE");
      String[] ofColumns = {"TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "ORDINAL_POSITION", "IS_NULLABLE"};
      print("columns", about.getColumns(null, null, "t", "%"), ofColumns);
      print("column n", about.getColumns(null, "public", "%", "n"), ofColumns);
      print("primary keys", about.getPrimaryKeys(null, null, "t"), "COLUMN_NAME");
      print("indexes", about.getIndexInfo(null, null, "t", false, false), "INDEX_NAME");
      print("imported keys", about.getImportedKeys(null, null, "t"), "FK_NAME");
      print("exported keys", about.getExportedKeys(null, null, "t"), "FK_NAME");
      print("procedures", about.getProcedures(null, null, "%"), "PROCEDURE_NAME");
      print("functions", about.getFunctions(null, null, "%"), "FUNCTION_NAME");
      print("best row", about.getBestRowIdentifier(null, null, "t", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME");
      print("types", about.getTypeInfo(), "TYPE_NAME", "DATA_TYPE");
      System.out.println("keywords " + !about.getSQLKeywords().isEmpty());
      callAll(about);
    }
  }

  /** Calls every method, of all tables and of t, reads what it gives, and prints those that fail. */
  static void callAll(DatabaseMetaData about) throws Exception {
    Set<String> failed = new TreeSet<>();
    int called = 0;
    for (Method method : DatabaseMetaData.class.getDeclaredMethods()) {
      if (Modifier.isStatic(method.getModifiers())) continue;
      for (String table : new String[] {null, "t"}) {
        Class<?>[] types = method.getParameterTypes();
        Object[] args = new Object[types.length];
        for (int i = 0; i < args.length; i++) {
          args[i] = types[i] == boolean.class ? true : types[i] == int.class ? (Object) 1 : i == 2 && types[i] == String.class ? table : null;
        }
        try {
          called++;
          if (!(method.invoke(about, args) instanceof ResultSet rows)) continue;
          int columns = rows.getMetaData().getColumnCount();
          while (rows.next()) for (int i = 1; i <= columns; i++) rows.getObject(i);
        } catch (InvocationTargetException error) {
          // What the driver itself does not implement is no matter of the server.
          if (!(error.getCause() instanceof SQLFeatureNotSupportedException)) failed.add(method.getName());
        }
      }
    }
    System.out.println("all " + (called > 300) + "\nfailed " + failed);
  }
}
