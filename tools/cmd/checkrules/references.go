package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// The places in documents that name a file or a folder of this repository.
var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	namedPath  = regexp.MustCompile("`((?:proto|engine|executor|services|deploy|test|tools|docs)/[A-Za-z0-9_./-]*)`")
	webAddress = regexp.MustCompile(`^[a-z]+:`)
	releaseTag = regexp.MustCompile(`/v\d[^/]*$`)
	namedTest  = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")
	heading    = regexp.MustCompile(`^#+ (.*)$`)
)

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)

// references are what documents may refer to.
type references struct {
	root  string
	tests map[string]bool // Names of test functions.
}

// readReferences reads the names of all tests below the root.
func readReferences(root string) (references, error) {
	r := references{root, map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllSubmatch(data, -1) {
			r.tests[string(m[1])] = true
		}
		return err
	})
	return r, err
}

// dead says which files, folders, headings and tests that a line of a document names do
// not exist. file is the document's.
func (r references) dead(file, line string) []string {
	var found []string
	for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
		if !r.tests[m[1]] {
			found = append(found, fmt.Sprintf("there is no test %s", m[1]))
		}
	}
	for _, m := range link.FindAllStringSubmatch(line, -1) {
		if webAddress.MatchString(m[1]) {
			continue
		}
		target, fragment, _ := strings.Cut(m[1], "#")
		path := file
		if target != "" {
			path = filepath.Join(filepath.Dir(file), target)
		}
		switch _, err := os.Stat(path); {
		case err != nil:
			found = append(found, fmt.Sprintf("the link %s leads nowhere: there is no such file", m[1]))
		case fragment != "" && filepath.Ext(path) == ".md" && !hasHeading(path, fragment):
			found = append(found, fmt.Sprintf("the link %s leads nowhere: the document has no such heading", m[1]))
		}
	}
	for _, m := range namedPath.FindAllStringSubmatch(line, -1) {
		if !releaseTag.MatchString(m[1]) && !exists(r.root, file, m[1]) {
			found = append(found, fmt.Sprintf("there is no %s", m[1]))
		}
	}
	return found
}

// exists reports whether the path is one of the repository, or of the document's folder
// as in a list of a module's packages.
func exists(root, file, path string) bool {
	for _, from := range []string{root, filepath.Dir(file)} {
		if _, err := os.Stat(filepath.Join(from, path)); err == nil {
			return true
		}
	}
	return false
}

// hasHeading reports whether a Markdown file has a heading with that anchor.
func hasHeading(path, anchor string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for _, line := range strings.Split(string(data), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil && anchorOf(m[1]) == anchor {
			return true
		}
	}
	return false
}

// anchorOf is the anchor that code hosts give a heading: in lower case, with hyphens for
// spaces, and without punctuation.
func anchorOf(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, text)
}
