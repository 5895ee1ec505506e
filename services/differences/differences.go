// Package differences reads the table of what jobpolicy deliberately does otherwise than the built-in
// controllers. People read table.md itself. The texts of kubectl jobpolicy preflight and the differences that
// the comparing tests tolerate come from it.
package differences

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// table has a section for each kind of object, with a Markdown table.
//
//go:embed table.md
var table string

// A Row is one difference. Its texts are Markdown.
type Row struct {
	// ID names the row. Section is the heading of its table.
	ID, Section string
	// What is the situation. BuiltIn and Here are what the built-in controller and jobpolicy do in it.
	What, BuiltIn, Here string
	// ShownBy says which tests show the difference: files of scenarios, names of tests, and folders of
	// tests that compare both sides and tolerate it.
	ShownBy []string
}

// Rows returns the table in order. It panics if a row is malformed.
func Rows() []Row {
	var rows []Row
	section := ""
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| id |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 5 {
			panic("expected five cells: " + line)
		}
		rows = append(rows, Row{ID: cells[0], Section: section, What: cells[1], BuiltIn: cells[2], Here: cells[3], ShownBy: strings.Fields(cells[4])})
	}
	return rows
}

// Find returns the row of an ID, and panics if there is none.
func Find(id string) Row {
	rows := Rows()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.ID == id })
	if i < 0 {
		panic("no difference has the ID " + id)
	}
	return rows[i]
}

// CheckTolerated compares the rows whose differences the tests of a folder tolerate, by their IDs,
// with those that the table says the folder shows. The error names what only one of them has.
func CheckTolerated(folder string, tolerated []string) error {
	var listed []string
	for _, r := range Rows() {
		if slices.Contains(r.ShownBy, folder) {
			listed = append(listed, r.ID)
		}
	}
	for _, id := range tolerated {
		if !slices.Contains(listed, id) {
			return fmt.Errorf("%s tolerates %q; the table has no such row, or its row does not name the folder", folder, id)
		}
	}
	for _, id := range listed {
		if !slices.Contains(tolerated, id) {
			return fmt.Errorf("row %q says that %s shows it, and nothing there tolerates it", id, folder)
		}
	}
	return nil
}
