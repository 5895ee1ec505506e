package main

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

func TestPurityFindsEachImpurityAndNothingElse(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), purity, "impure", "pure")
}

// The sources in testdata/src/impure must use each call of the table, so that no row is superfluous.
func TestEachOrderlessCallIsFound(t *testing.T) {
	var found []analysis.Diagnostic
	for _, result := range analysistest.Run(t, analysistest.TestData(), purity, "impure") {
		found = append(found, result.Diagnostics...)
	}
	fires := func(rule, subject, instead string) {
		t.Helper()
		fired := slices.ContainsFunc(found, func(d analysis.Diagnostic) bool {
			return d.Category == rule && strings.Contains(d.Message, subject) && strings.HasSuffix(d.Message, ": "+instead)
		})
		if !fired {
			t.Errorf("no source breaks the row %s (%s): %s", subject, rule, instead)
		}
	}
	for _, row := range orderlessCalls {
		for _, name := range row.names {
			fires("map-order", qualified(row.in, name), orderAdvice)
		}
	}
}
