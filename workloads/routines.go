// Goroutines that call, sort, allocate and wait for each other, for as many milliseconds of CPU time as the argument says.

package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// used gives the CPU time of the process in milliseconds.
func used() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 1 << 62
	}
	return (usage.Utime.Nano() + usage.Stime.Nano()) / 1e6
}

//go:noinline
func recurses(depth int) int {
	if depth < 2 {
		return depth
	}
	return recurses(depth-1) + recurses(depth-2)
}

//go:noinline
func sorts(seed int) int {
	numbers := make([]int, 5000)
	for index := range numbers {
		seed = seed*1103515245 + 12345
		numbers[index] = seed >> 16 & 0xffff
	}
	sort.Slice(numbers, func(a, b int) bool { return numbers[a] < numbers[b] })
	return numbers[len(numbers)/2]
}

type node struct {
	children [2]*node
	name     string
}

//go:noinline
func allocates(depth int) *node {
	if depth == 0 {
		return nil
	}
	children := [2]*node{allocates(depth - 1), allocates(depth - 1)}
	return &node{children, strings.Repeat("n", depth)}
}

//go:noinline
func maps(count int) int {
	words := map[string]int{}
	for index := 0; index < count; index++ {
		words[fmt.Sprintf("word %d", index%97)] += index
	}
	return len(words)
}

func work(limit int64, results chan<- int) {
	for round := 0; used() < limit; round++ {
		tree := allocates(12)
		results <- recurses(20) + sorts(round) + maps(500) + len(tree.name)
	}
}

func main() {
	limit, err := strconv.ParseInt(os.Args[len(os.Args)-1], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: routines MILLISECONDS")
		os.Exit(2)
	}
	results := make(chan int)
	var workers sync.WaitGroup
	for number := 0; number < 3; number++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			work(limit, results)
		}()
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	sum := 0
	for result := range results {
		sum += result
	}
	fmt.Println(sum)
}
