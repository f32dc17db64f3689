import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;

/** PostgreSQL's JDBC driver. Arguments: the port, then pairs of a user and a password. Prints who is signed in, or the SQLSTATE. */
public class SignIn {
  public static void main(String[] args) {
    for (int k = 1; k < args.length; k += 2) {
      String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/qdb?sslmode=disable";
      try (Connection connection = DriverManager.getConnection(url, args[k], args[k + 1])) {
        ResultSet rows = connection.createStatement().executeQuery("select current_user()");
        rows.next();
        System.out.println(rows.getString(1));
      } catch (SQLException error) {
        System.out.println(error.getSQLState());
      }
    }
  }
}
