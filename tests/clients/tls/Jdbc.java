import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Timer;
import java.util.TimerTask;

/** PostgreSQL's JDBC driver, with its jar on the class path. Arguments: port, authority, another authority. */
public class Jdbc {
  static void same(Object expected, Object found) {
    if (!expected.equals(found)) throw new AssertionError("expected " + expected + ", found " + found);
  }

  static Connection connect(String port, String more) throws SQLException {
    return DriverManager.getConnection("jdbc:postgresql://localhost:" + port + "/qdb?user=admin&password=quest" + more);
  }

  static String refusal(String port, String more) {
    try (Connection connection = connect(port, more)) {
      throw new AssertionError("connected with " + more);
    } catch (SQLException error) {
      return String.valueOf(error.getMessage());
    }
  }

  public static void main(String[] args) throws Exception {
    String port = args[0], verified = "&sslmode=verify-full&sslrootcert=" + args[1];
    try (Connection connection = connect(port, verified); Statement statement = connection.createStatement()) {
      ResultSet rows = statement.executeQuery("select sum(x), count() from long_sequence(1000)");
      rows.next();
      same(500500L, rows.getLong(1));
      rows = statement.executeQuery("select x, 'some text' from long_sequence(200000)");
      long sum = 0;
      while (rows.next()) sum += rows.getLong(1);
      same(200000L * 200001 / 2, sum);
      new Timer(true).schedule(new TimerTask() {
        @Override public void run() {
          try {
            statement.cancel();
          } catch (SQLException error) {
            error.printStackTrace();
          }
        }
      }, 500);
      try {
        statement.executeQuery("select sum(sin(x)) from long_sequence(100000000000)").next();
        throw new AssertionError("was not cancelled");
      } catch (SQLException error) {
        same("57014", error.getSQLState());
      }
    }
    refusal(port, "&sslmode=verify-full&sslrootcert=" + args[2]);
    same(true, refusal(port, "&sslmode=disable").contains("pg.tls.required"));
    System.out.println("ok");
  }
}
