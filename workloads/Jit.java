// A method that the virtual machine compiles, called by one that it may only interpret.
public class Jit {
    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    public static void main(String[] arguments) {
        long sum = 0;
        for (int turn = 0; turn < 12; turn++) sum += fibonacci(36);
        System.out.println(sum);
    }
}
