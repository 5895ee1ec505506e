package adopter // build.sh puts it into the package that asks.

import (
	"slices"
	"testing"
	"time"
)

// measure reports the median and the 99th percentile of questions, in microseconds.
func measure(b *testing.B, ask func() error) {
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := ask(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
