// Command nodeimages writes the images that every cluster with real containers
// has into a directory.
package main

import (
	"fmt"
	"os"

	"jobpolicy.dev/deploy/local/internal/nodeimages"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: nodeimages DIRECTORY PAUSE-PROGRAM")
		os.Exit(2)
	}
	if err := nodeimages.Write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "nodeimages:", err)
		os.Exit(1)
	}
}
