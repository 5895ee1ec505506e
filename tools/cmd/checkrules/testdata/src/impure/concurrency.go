// Package impure breaks every purity rule at least once.
package impure

func concurrent(a, b chan int) int {
	go func() { a <- 1 }() // want `go statement: call the function and use its result`
	select {               // want `select statement: which case runs is random`
	case v := <-a:
		return v
	case v := <-b:
		return v
	}
}
