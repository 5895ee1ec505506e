package apiserver

import "sync"

// Most goroutines of a simulated cluster live for one request, and each grows its stack
// from the smallest size to the 32 KiB that the handlers need. That took 9% of the
// processor's time. Go starts goroutines with the average stack size that the last
// garbage collection saw, and GrowStacks raises this average.

// deepFrames is how many frames of 64 KiB the deep stack has.
const deepFrames = 64

// GrowStacks lets later goroutines of the process begin with larger stacks. It must be
// called outside of synctest's bubbles.
var GrowStacks = sync.OnceFunc(func() { go deepStack(deepFrames) })

// deepStack keeps a deep stack as long as the process lives. The garbage collector
// finds no pointer in it.
func deepStack(frames int) byte {
	var frame [64 << 10]byte
	if frames == 0 {
		select {}
	}
	return deepStack(frames-1) + frame[frames]
}
