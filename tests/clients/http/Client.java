import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** Java's HttpClient in its default setting, which offers an upgrade to HTTP/2 with its first requests. */
public class Client {
  static final HttpClient client = HttpClient.newHttpClient();
  static String base;

  static HttpRequest.Builder exec(String query) {
    return HttpRequest.newBuilder(URI.create(base + "/exec?nm=true&query=" + URLEncoder.encode(query, StandardCharsets.UTF_8)));
  }

  static void same(Object expected, Object found) {
    if (!expected.equals(found)) throw new AssertionError("expected " + expected + ", found " + found);
  }

  static String send(HttpRequest request) throws Exception {
    HttpResponse<String> reply = client.send(request, BodyHandlers.ofString());
    return reply.statusCode() + " " + reply.body();
  }

  public static void main(String[] args) throws Exception {
    base = args[0];
    int rows = Integer.parseInt(args[1]), requests = Integer.parseInt(args[2]);
    String one = "200 {\"dataset\":[[1]],\"count\":1}";
    same(one, send(exec("select 1").build()));
    String json = "{\"query\": \"select 1\", \"nm\": true}";
    HttpRequest.Builder post = HttpRequest.newBuilder(URI.create(base + "/exec")).header("Content-Type", "application/json");
    same(one, send(post.POST(HttpRequest.BodyPublishers.ofString(json)).build()));
    URI write = URI.create(base + "/write");
    same("204 ", send(HttpRequest.newBuilder(write).POST(HttpRequest.BodyPublishers.ofString("java v=1i\n")).build()));
    byte[] line = "java v=2i\n".getBytes();
    same("204 ", send(HttpRequest.newBuilder(write).POST(HttpRequest.BodyPublishers.ofByteArrays(List.of(line, line))).build()));
    same("200 {\"dataset\":[[3]],\"count\":1}", send(exec("select count() from java").build()));
    HttpRequest many = HttpRequest.newBuilder(URI.create(base + "/exp?query=select%20x%20from%20long_sequence(" + rows + ")")).build();
    same((long) rows + 1, client.send(many, BodyHandlers.ofLines()).body().count());
    HttpRequest endless = HttpRequest.newBuilder(URI.create(base + "/exp?query=select%20x%20from%20long_sequence(100000000000)")).build();
    try (InputStream body = client.send(endless, BodyHandlers.ofInputStream()).body()) {
      body.readNBytes(100_000);
    }
    HttpRequest head = HttpRequest.newBuilder(URI.create(base + "/settings")).method("HEAD", HttpRequest.BodyPublishers.noBody()).build();
    same("200 ", send(head));
    List<CompletableFuture<HttpResponse<String>>> all = IntStream.range(0, 100)
      .mapToObj(n -> client.sendAsync(exec("select " + n).build(), BodyHandlers.ofString())).toList();
    for (int n = 0; n < 100; n++) same("{\"dataset\":[[" + n + "]],\"count\":1}", all.get(n).get().body());
    for (int n = 0; n < requests; n++) same(one, send(exec("select 1").build()));
    System.out.println("ok");
  }
}
