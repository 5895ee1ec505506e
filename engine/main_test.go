package engine_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes properties run more often than rapid does by itself: a Job's
// life is cheap to simulate, and rare faults must meet. -rapid.checks or
// RAPID_CHECKS says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	_, given := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "1500"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
