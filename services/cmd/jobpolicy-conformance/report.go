package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func failures(results []result) (n int) {
	for _, r := range results {
		if r.problem != "" {
			n++
		}
	}
	return n
}

// bySuite groups results that follow each other in the order of their suites.
func bySuite(results []result) [][]result {
	var suites [][]result
	for _, r := range results {
		if n := len(suites); n == 0 || suites[n-1][0].suite != r.suite {
			suites = append(suites, nil)
		}
		suites[len(suites)-1] = append(suites[len(suites)-1], r)
	}
	return suites
}

// writeTable writes a line for each suite, and below it each wrong answer.
func writeTable(w io.Writer, results []result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASES\tRIGHT\tWRONG")
	for _, suite := range bySuite(results) {
		wrong := failures(suite)
		fmt.Fprintf(table, "%s\t%d\t%d\n", suite[0].suite, len(suite)-wrong, wrong)
	}
	wrong := failures(results)
	fmt.Fprintf(table, "all\t%d\t%d\n", len(results)-wrong, wrong)
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.problem == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s, %s:\n%s\n", r.suite, r.name, r.problem); err != nil {
			return err
		}
	}
	return nil
}

// The elements of JUnit's XML, as far as readers of it agree.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func writeJUnit(file string, results []result) error {
	var all junitSuites
	for _, suite := range bySuite(results) {
		s := junitSuite{Name: suite[0].suite, Tests: len(suite), Failures: failures(suite)}
		for _, r := range suite {
			c := junitCase{Class: r.suite, Name: r.name, Seconds: fmt.Sprintf("%.3f", r.took.Seconds())}
			if r.problem != "" {
				c.Failure = &junitFailure{Message: "wrong answer", Text: r.problem}
			}
			s.Cases = append(s.Cases, c)
		}
		all.Suites = append(all.Suites, s)
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}
