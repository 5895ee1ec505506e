// Command measure prints how large the repository is: lines of Go, lengths of functions,
// packages, documents, and how many files know a field of a Job. Generated code does not count.
//
//	measure [-C dir]
//
// Exit status: 0; 1 when the repository cannot be read.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	dir := flag.String("C", ".", "the top `folder` of the repository")
	flag.Parse()
	if err := run(*dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// field is a field of a Job's spec that all parts know: the files that name it are those that a
// new one like it would touch.
const field = "maxfailedindexes"

// size is what the files of the repository add up to.
type size struct {
	// product is Go without tests under proto, engine, executor and services; local is that of
	// deploy/local and tools; tests are all tests, and module test.
	product, local, tests int
	functions             []int
	// packages are the folders with Go files that are no tests.
	packages map[string]bool
	// fieldProduct and fieldTests are the files that name the field.
	fieldProduct, fieldTests int
	markdown, changelog      int
}

func run(dir string, w io.Writer) error {
	s := size{packages: map[string]bool{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "bin" || name != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		return s.add(path, filepath.ToSlash(name))
	})
	if err != nil {
		return err
	}
	return s.print(w)
}

// add adds a file.
func (s *size) add(path, name string) error {
	switch filepath.Ext(name) {
	case ".md", ".go", ".proto":
	default:
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, ".md") {
		s.markdown += len(data)
		if name == "CHANGELOG.md" {
			s.changelog = len(data)
		}
		return nil
	}
	if generated(data) {
		return nil
	}
	test := strings.HasPrefix(name, "test/") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/")
	if bytes.Contains(bytes.ToLower(data), []byte(field)) {
		if test {
			s.fieldTests++
		} else {
			s.fieldProduct++
		}
	}
	if strings.HasSuffix(name, ".proto") || strings.Contains(name, "/testdata/") {
		return nil
	}
	return s.addGo(path, name, data, test)
}

func (s *size) addGo(path, name string, data []byte, test bool) error {
	lines := bytes.Count(data, []byte("\n"))
	switch {
	case test:
		s.tests += lines
	case strings.HasPrefix(name, "deploy/") || strings.HasPrefix(name, "tools/"):
		s.local += lines
	default:
		s.product += lines
	}
	if !test {
		s.packages[filepath.ToSlash(filepath.Dir(name))] = true
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, data, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.functions = append(s.functions, fset.Position(f.End()).Line-fset.Position(f.Pos()).Line+1)
		}
	}
	return nil
}

// generated reports whether a file says in its first lines that a generator wrote it.
func generated(data []byte) bool {
	head, _, _ := bytes.Cut(data, []byte("\npackage "))
	return bytes.Contains(head, []byte("// Code generated ")) && bytes.Contains(head, []byte("DO NOT EDIT."))
}

// within counts the packages in a folder, and in those below it.
func (s *size) within(dir string) int {
	n := 0
	for p := range s.packages {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			n++
		}
	}
	return n
}

func (s *size) print(w io.Writer) error {
	slices.Sort(s.functions)
	quantile := func(q float64) int {
		if len(s.functions) == 0 {
			return 0
		}
		return s.functions[min(int(q*float64(len(s.functions))), len(s.functions)-1)]
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		what string
		n    string
	}{
		{"Go lines in all", fmt.Sprint(s.product + s.local + s.tests)},
		{"  proto, engine, executor, services, without tests", fmt.Sprint(s.product)},
		{"  deploy/local, tools, without tests", fmt.Sprint(s.local)},
		{"  tests and module test", fmt.Sprint(s.tests)},
		{"functions: lines, median / 90 % / longest", fmt.Sprintf("%d / %d / %d", quantile(0.5), quantile(0.9), quantile(1))},
		{"packages under executor", fmt.Sprint(s.within("executor"))},
		{"packages under services/internal", fmt.Sprint(s.within("services/internal"))},
		{"files that know maxFailedIndexes: product + tests", fmt.Sprintf("%d + %d", s.fieldProduct, s.fieldTests)},
		{"Markdown, KB (CHANGELOG.md)", fmt.Sprintf("%d (%d)", s.markdown/1000, s.changelog/1000)},
	} {
		fmt.Fprintf(t, "%s\t%s\n", row.what, row.n)
	}
	return t.Flush()
}
