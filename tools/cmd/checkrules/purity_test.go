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

// The sources in testdata/src/impure must break each row of the tables, so that no row is there in vain.
func TestEachRowOfThePurityTablesFires(t *testing.T) {
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
	for _, row := range impureImports {
		fires(row.rule, "import of "+row.path, row.instead)
	}
	for _, row := range impureNames {
		for _, name := range row.names {
			fires(row.rule, qualified(row.in, name), row.instead)
		}
	}
	for _, row := range orderlessCalls {
		for _, name := range row.names {
			fires("map-order", qualified(row.in, name), orderAdvice)
		}
	}
}
