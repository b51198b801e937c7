import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * Runs a script of commands through Jedis and prints each reply's leaves on a
 * line. See test/clients.
 *
 * <p>usage: Main HOST:PORT one|pipeline &lt;commands
 */
public class Main {
  public static void main(String[] argv) throws Exception {
    List<Supplier<Object>> replies = new ArrayList<>();
    try (Jedis jedis = new Jedis(HostAndPort.from(argv[0]))) {
      Pipeline pipeline = jedis.pipelined();
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        String[] words = line.split(" ");
        ProtocolCommand command = () -> words[0].getBytes(StandardCharsets.UTF_8);
        String[] args = Arrays.copyOfRange(words, 1, words.length);
        if (argv[1].equals("pipeline")) {
          replies.add(pipeline.sendCommand(command, args));
        } else {
          Object reply = answer(() -> jedis.sendCommand(command, args));
          replies.add(() -> reply);
        }
      }
      if (argv[1].equals("pipeline")) {
        pipeline.sync();
      }
      for (Supplier<Object> reply : replies) {
        List<String> out = new ArrayList<>();
        leaves(answer(reply), out);
        System.out.println(out.isEmpty() ? "empty" : String.join(" ", out));
      }
    }
  }

  /** An error reply is a value here. */
  private static Object answer(Supplier<Object> reply) {
    try {
      return reply.get();
    } catch (JedisDataException e) {
      return e;
    }
  }

  private static void leaves(Object v, List<String> out) {
    if (v == null) {
      out.add("nil");
    } else if (v instanceof JedisDataException) {
      out.add("!");
    } else if (v instanceof byte[]) {
      out.add(new String((byte[]) v, StandardCharsets.UTF_8));
    } else if (v instanceof List) {
      ((List<?>) v).forEach(item -> leaves(item, out));
    } else if (v instanceof Map.Entry) {
      leaves(((Map.Entry<?, ?>) v).getKey(), out);
      leaves(((Map.Entry<?, ?>) v).getValue(), out);
    } else {
      out.add(v.toString());
    }
  }
}
