// Threads of Java that wait for a monitor, a lock, a notification and a time: `java Waits SECONDS`.
import java.util.concurrent.locks.LockSupport;

class Waits {
    private static final Object monitor = new Object(), signal = new Object();
    private static volatile boolean isOver;

    private static void start(String name, Runnable run) {
        Thread thread = new Thread(run, name);
        thread.start();
    }

    private static void pause(long time) {
        try {
            Thread.sleep(time);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        long time = (long) (Double.parseDouble(arguments[0]) * 1000);
        start("holds", () -> {
            synchronized (monitor) {
                pause(time);
            }
        });
        pause(50);
        start("enters", () -> {
            synchronized (monitor) {
                isOver = true;
            }
        });
        start("notified", () -> {
            synchronized (signal) {
                try {
                    signal.wait(time);
                } catch (InterruptedException error) {
                    throw new IllegalStateException(error);
                }
            }
        });
        start("parks", () -> LockSupport.parkNanos(time * 1000000));
        start("sleeps", () -> pause(time));
        pause(time);
    }
}
