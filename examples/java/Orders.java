// Closes orders that are not paid in time. Java 17 or newer, and Jackson for JSON.
//
//   javac -cp 'lib/*' Orders.java
//   java -cp 'lib/*:.' Orders place ORDER SECONDS   an order, closed after SECONDS unless it is paid
//   java -cp 'lib/*:.' Orders paid ORDER            it is paid: cancel the job
//   java -cp 'lib/*:.' Orders work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

public class Orders {
    static final int TTR_S = 60; // a worker that is silent for a minute is dead: another one gets the job
    static final String SERVER = System.getenv().getOrDefault("DELAYQUEUE_URL", "http://localhost:9277");
    static final String TOKEN = System.getenv().getOrDefault("DELAYQUEUE_TOKEN", ""); // if the server requires one
    static final ObjectMapper JSON = new ObjectMapper();
    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** The queue said no; the codes are in docs/api.md. */
    static class QueueException extends IOException {
        final int code;

        QueueException(int code, String message) {
            super(message);
            this.code = code;
        }
    }

    /** Calls an endpoint: queue("finish", Map.of("id", "1001")). Returns the answer's data. */
    static JsonNode queue(String verb, Map<String, ?> request) throws IOException, InterruptedException {
        var post = HttpRequest.newBuilder(URI.create(SERVER + "/" + verb))
            .POST(HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(request)))
            .timeout(Duration.ofSeconds(200)); // longer than /pop waits
        if (!TOKEN.isEmpty()) {
            post.header("Authorization", "Bearer " + TOKEN);
        }
        var response = HTTP.send(post.build(), BodyHandlers.ofString());
        var answer = JSON.readTree(response.body());
        var code = answer.path("code");
        if (!code.isInt()) {
            throw new IOException("not an answer of the queue: HTTP status " + response.statusCode());
        }
        if (code.asInt() != 0) {
            throw new QueueException(code.asInt(), answer.path("message").asText());
        }
        return answer.path("data");
    }

    static void place(String order, double seconds) throws IOException, InterruptedException {
        queue("push", Map.of(
            "topic", "order-close",
            "id", "close-" + order, // an id is one job: pushing it again replaces it
            "delay", seconds,
            "ttr", TTR_S,
            "body", JSON.writeValueAsString(Map.of("order", order)),
            "tags", List.of("order:" + order), // what /cancel asks for
            "retry", Map.of("delays", List.of("10s", "1m", "10m")))); // after failures; then it is buried
    }

    static void paid(String order) throws IOException, InterruptedException {
        var cancelled = queue("cancel", Map.of("tag", "order:" + order));
        System.out.println("cancelled " + cancelled.get("count"));
    }

    static void work(int jobs) throws InterruptedException {
        while (jobs != 0) {
            try {
                var job = queue("pop", Map.of("topic", "order-close"));
                if (!job.has("receipt")) {
                    Thread.sleep(100); // nothing was due for three minutes
                    continue;
                }
                handle(job);
                jobs--;
            } catch (IOException error) {
                System.err.println(error);
                Thread.sleep(1000); // the server is being restarted
            }
        }
    }

    static void handle(JsonNode job) throws InterruptedException {
        long deadlineMs = System.currentTimeMillis() + TTR_S * 1000;
        String id = job.path("id").asText(), receipt = job.path("receipt").asText(), verb, message;
        var report = new HashMap<String, Object>(Map.of("id", id, "receipt", receipt));
        try {
            message = closeOrder(JSON.readTree(job.path("body").asText()).path("order").asText());
            verb = "finish";
        } catch (Throwable error) { // a StackOverflowError, too: whatever it is, the queue has to know
            message = Objects.requireNonNullElse(error.getMessage(), error.toString());
            verb = "release";
            report.put("fallback", 10); // the schedule says when it is delivered again; without one, in ten seconds
        }
        report.put("message", message);
        do {
            try {
                queue(verb, report);
                break;
            } catch (IOException error) {
                if (error instanceof QueueException refused && refused.code != 6 && refused.code != 10) {
                    message = error.getMessage(); // 2: it has ended meanwhile; 4: we were too slow, another worker has it
                    break;
                }
                System.err.println(error); // no answer, or code 6: nobody knows whether it was done; 10: too busy
                Thread.sleep(1000);
            }
        } while (System.currentTimeMillis() < deadlineMs);
        System.out.println(id + ": " + message);
    }

    /** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
    static String closeOrder(String order) {
        if (!order.matches("\\d+")) {
            throw new IllegalStateException("no order " + order);
        }
        return "closed order " + order;
    }

    public static void main(String[] arguments) throws Exception {
        var command = arguments.length > 0 ? arguments[0] : "";
        if (command.equals("place") && arguments.length == 3) {
            place(arguments[1], Double.parseDouble(arguments[2]));
        } else if (command.equals("paid") && arguments.length == 2) {
            paid(arguments[1]);
        } else if (command.equals("work")) {
            work(arguments.length > 1 ? Integer.parseInt(arguments[1]) : -1);
        } else {
            System.err.println("the first lines of this file say how to use it");
            System.exit(2);
        }
    }
}
