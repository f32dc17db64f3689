import io.questdb.client.Sender;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.temporal.ChronoUnit;

/** QuestDB's Java client: for each line of the input, a configuration, it sends a row to `ticks` and prints the outcome. */
class LinesClient {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try (Sender sender = Sender.fromConfig(line)) {
                sender.table("ticks").doubleColumn("price", 1.5).at(1, ChronoUnit.MICROS);
                try {
                    sender.flush();
                } catch (RuntimeException error) {
                    sender.reset(); // otherwise close() would send the row again
                    throw error;
                }
                System.out.println("ok");
            } catch (RuntimeException error) {
                System.out.println(String.valueOf(error.getMessage()).replaceAll("\\s+", " "));
            }
        }
    }
}
