// The probe for Java: computes and moves bytes as Crosswind asks (docs/reference/probe-protocol.md).
// Options: threads=platform|virtual-traffic|virtual io=stream|direct|heap buffers=reuse|fresh yield=no|yield|park
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

public final class Probe {
    static final int PLACES = 8, MESSAGES_EACH = 32, STEP = 4096;
    static final VarHandle LONGS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    static final Map<String, String> options = new HashMap<>();
    static final List<Flow> flows = new ArrayList<>();
    static ByteBuffer counter;
    static volatile int sink; // results go here, so that no compiler leaves the work out

    static String option(String key, String usual) {
        return options.getOrDefault(key, usual);
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            options.put(pair[0], pair.length > 1 ? pair[1] : "");
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null && !line.equals("quit"); line = input.readLine()) {
            try {
                say("ok" + answer(line.split(" ")));
            } catch (Exception | Error problem) {
                say("error " + problem.toString().replace('\n', ' '));
            }
        }
        System.exit(0);
    }

    static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "crosswind":
                try (FileChannel file = FileChannel.open(Path.of(words[2]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                    counter = file.map(FileChannel.MapMode.READ_WRITE, 0, 8);
                }
                return " 1 java " + System.getProperty("java.version") + facts();
            case "compute":
                if (!words[1].equals("diagonals")) {
                    throw new IllegalArgumentException("this probe computes diagonals only, not " + words[1]);
                }
                Diagonals work = new Diagonals(Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                start("cw-compute", option("threads", "platform").equals("virtual"), work);
                while ((long) LONGS.getVolatile(counter, 0) == 0) {
                    Thread.sleep(1);
                }
                return " " + work.stepsPerUnit();
            case "flow":
                int colon = words[2].lastIndexOf(':');
                String host = words[2].substring(0, colon).replaceAll("[\\[\\]]", "");
                InetSocketAddress to = new InetSocketAddress(host, Integer.parseInt(words[2].substring(colon + 1)));
                boolean stream = option("io", "stream").equals("stream");
                Flow flow = stream ? new Streamed() : new Channelled(option("io", "stream").equals("direct"));
                flow.send = words[1].equals("send");
                flow.bytes = Integer.parseInt(words[4]);
                int port = flow.connect(to, words[3].getBytes(StandardCharsets.US_ASCII));
                flows.add(flow);
                start("cw-traffic", !option("threads", "platform").equals("platform"), flow);
                return " " + port;
            case "close":
                for (Flow one : flows) {
                    one.closing = true;
                    one.close();
                }
                flows.clear();
                return "";
            default:
                throw new IllegalArgumentException("unknown request " + words[0]);
        }
    }

    static String facts() {
        StringBuilder facts = new StringBuilder();
        var collectors = ManagementFactory.getGarbageCollectorMXBeans();
        facts.append(" gc=").append(collectors.get(0).getName().replace(' ', '-'));
        facts.append(" cpus=").append(Runtime.getRuntime().availableProcessors());
        facts.append(" carriers=").append(System.getProperty("jdk.virtualThreadScheduler.parallelism", "default"));
        for (String[] each : new String[][] {{"threads", "platform"}, {"io", "stream"}, {"buffers", "reuse"}, {"yield", "no"}}) {
            facts.append(' ').append(each[0]).append('=').append(option(each[0], each[1]));
        }
        return facts.append(" vm=").append(System.getProperty("java.vm.name").replace(' ', '-')).toString();
    }

    static void start(String name, boolean virtual, Runnable work) throws Exception {
        if (virtual) { // by reflection, so that Java 17 runs the rest
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
            return;
        }
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Elements (i, i + d) of the square of a matrix, a few microseconds' worth a step. */
    static final class Diagonals implements Runnable {
        final int side, diagonals, dots;
        final int[] matrix;
        final String yield = option("yield", "no");
        int row, diagonal;

        Diagonals(int side, int diagonals) {
            this.side = side;
            this.diagonals = diagonals;
            dots = Math.max(STEP / side, 1);
            matrix = new Random().ints((long) side * side, -128, 128).toArray();
        }

        double stepsPerUnit() {
            return (double) side * diagonals / dots;
        }

        int step() {
            int sum = 0;
            for (int dot = 0; dot < dots; dot++) {
                sum += element(matrix, side, row, (row + diagonal) % side);
                if (++row == side) {
                    row = 0;
                    diagonal = (diagonal + 1) % diagonals;
                }
            }
            return sum;
        }

        static int element(int[] matrix, int side, int row, int column) {
            int sum = 0;
            for (int k = 0, left = row * side, right = column; k < side; k++, left++, right += side) {
                sum += matrix[left] * matrix[right];
            }
            return sum;
        }

        @Override public void run() {
            for (long steps = 1;; steps++) {
                sink = step();
                LONGS.setOpaque(counter, 0, steps);
                if (yield.equals("yield")) {
                    Thread.yield();
                } else if (yield.equals("park")) {
                    LockSupport.parkNanos(1);
                }
            }
        }
    }

    abstract static class Flow implements Runnable {
        boolean send;
        int bytes;
        volatile boolean closing;

        abstract int connect(InetSocketAddress to, byte[] ticket) throws IOException;
        abstract void prepare();
        /** Moves at most {@code left} bytes at {@code at} of a place; how many, below 1 at the end. */
        abstract int move(int place, int at, int left) throws IOException;
        abstract void close() throws IOException;

        @Override public void run() {
            try {
                prepare();
                for (long moved = 0;;) {
                    int place = (int) (moved / bytes / MESSAGES_EACH % PLACES);
                    int at = (int) (moved % bytes);
                    int now = move(place, at, bytes - at);
                    if (now < 1) {
                        throw new IOException("the peer closed a connection");
                    }
                    moved += now;
                }
            } catch (IOException | RuntimeException | Error problem) {
                if (!closing) {
                    say("error a flow ended: " + problem);
                }
            }
        }
    }

    static final class Streamed extends Flow {
        final boolean fresh = option("buffers", "reuse").equals("fresh");
        Socket socket;
        byte[][] places;

        @Override int connect(InetSocketAddress to, byte[] ticket) throws IOException {
            socket = new Socket();
            socket.connect(to);
            socket.getOutputStream().write(ticket);
            return socket.getLocalPort();
        }

        @Override void prepare() {
            places = new byte[PLACES][bytes];
            for (byte[] place : places) {
                new Random().nextBytes(place);
            }
        }

        @Override int move(int place, int at, int left) throws IOException {
            if (fresh && at == 0) {
                places[place] = new byte[bytes];
            }
            if (send) {
                socket.getOutputStream().write(places[place], at, left);
                return left;
            }
            return socket.getInputStream().read(places[place], at, left);
        }

        @Override void close() throws IOException {
            socket.close();
        }
    }

    static final class Channelled extends Flow {
        final boolean direct;
        SocketChannel channel;
        ByteBuffer[] places;

        Channelled(boolean direct) {
            this.direct = direct;
        }

        @Override int connect(InetSocketAddress to, byte[] ticket) throws IOException {
            channel = SocketChannel.open(to);
            channel.write(ByteBuffer.wrap(ticket));
            return channel.socket().getLocalPort();
        }

        ByteBuffer place() {
            return direct ? ByteBuffer.allocateDirect(bytes) : ByteBuffer.allocate(bytes);
        }

        @Override void prepare() {
            places = new ByteBuffer[PLACES];
            for (int i = 0; i < PLACES; i++) {
                byte[] drawn = new byte[bytes];
                new Random().nextBytes(drawn);
                places[i] = place().put(drawn);
            }
        }

        @Override int move(int place, int at, int left) throws IOException {
            ByteBuffer buffer = places[place];
            buffer.limit(at + left).position(at);
            return send ? channel.write(buffer) : channel.read(buffer);
        }

        @Override void close() throws IOException {
            channel.close();
        }
    }
}
