package engine_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain raises the number of checks of each property: a Job's life is cheap to simulate,
// and some defects need several rare faults at once. -rapid.checks and RAPID_CHECKS
// override it.
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
