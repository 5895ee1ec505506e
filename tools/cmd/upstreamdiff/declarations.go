package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// A declaration is a piece of source that has a name: a function, a type, a field, an entry of a
// map, a test. text is how it is written, without comments.
type declaration struct {
	name, file, text string
	// leadsTo are the names that its text has. A field's are those of its type.
	leadsTo []string
}

// parse adds the declarations of a file, by name. Names begin with the folder of the file, so
// that two packages of one area do not mix.
func parse(path, shown string, a area, into map[string]declaration) error {
	if generated(shown) || strings.HasSuffix(shown, "_test.go") && !a.tests {
		return nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution) // No comments.
	if err != nil {
		return err
	}
	c := collector{fset: fset, file: shown, area: a, into: into}
	for _, d := range file.Decls {
		c.declare(d)
	}
	return nil
}

func generated(file string) bool {
	base := path.Base(file)
	return strings.HasPrefix(base, "zz_generated") || strings.HasPrefix(base, "generated.")
}

// collector collects the declarations of one file.
type collector struct {
	fset *token.FileSet
	file string
	area area
	into map[string]declaration
}

func (c *collector) add(name string, node any) {
	if c.area.only != nil && !c.area.only.MatchString(name) {
		return
	}
	d := declaration{name: name, file: c.file, text: c.text(node)}
	if n, ok := node.(ast.Node); ok {
		d.leadsTo = identifiers(n)
	}
	key := path.Dir(c.file) + "." + name
	if earlier, again := c.into[key]; again { // Such as a statement of the same form.
		d.text = earlier.text + "\n" + d.text
	}
	c.into[key] = d
}

func (c *collector) text(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, c.fset, node); err != nil {
		return err.Error()
	}
	return b.String()
}

func identifiers(node ast.Node) []string {
	var names []string
	ast.Inspect(node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}

func (c *collector) declare(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		c.function(d)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || c.area.statements != nil {
			return
		}
		for _, spec := range d.Specs {
			c.spec(spec)
		}
	}
}

func (c *collector) function(f *ast.FuncDecl) {
	if f.Body != nil {
		withoutLogs(f.Body)
	}
	if only := c.area.statements; only != nil {
		for _, stmt := range f.Body.List {
			text := c.text(stmt)
			if found := only.FindString(text); found != "" {
				c.add(f.Name.Name+": "+strings.Trim(found, `"`), stmt)
			}
		}
		return
	}
	name := "func " + f.Name.Name
	if f.Recv != nil {
		name = "func (" + c.text(f.Recv.List[0].Type) + ") " + f.Name.Name
	}
	c.add(name, f)
}

// withoutLogs removes the calls of a logger. What is logged is not followed here.
func withoutLogs(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		if block, ok := n.(*ast.BlockStmt); ok {
			block.List = slices.DeleteFunc(block.List, logs)
		}
		return true
	})
}

// logs reports whether a statement is a call such as logger.V(2).Info(...).
func logs(stmt ast.Stmt) bool {
	expr, ok := stmt.(*ast.ExprStmt)
	if !ok {
		return false
	}
	for node := expr.X; ; {
		switch n := node.(type) {
		case *ast.CallExpr:
			node = n.Fun
		case *ast.SelectorExpr:
			node = n.X
		case *ast.Ident:
			return n.Name == "logger" || n.Name == "klog"
		default:
			return false
		}
	}
}

func (c *collector) spec(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		structure, ok := s.Type.(*ast.StructType)
		if !ok {
			c.add("type "+s.Name.Name, s)
			return
		}
		c.add("type "+s.Name.Name, &ast.TypeSpec{Name: s.Name, Type: &ast.StructType{Fields: &ast.FieldList{}}})
		for _, field := range structure.Fields.List {
			c.add(s.Name.Name+"."+fieldName(c, field), field)
		}
	case *ast.ValueSpec:
		if len(s.Values) == 1 && (c.entries(s) || c.specs(s)) {
			return
		}
		for _, id := range s.Names {
			c.add(id.Name, s)
		}
	}
}

// fieldName is the name of a field, or the type that is embedded.
func fieldName(c *collector, f *ast.Field) string {
	if len(f.Names) == 0 {
		return c.text(f.Type)
	}
	return f.Names[0].Name
}

// entries adds the entries of a map by themselves, such as the gates in the map of all gates.
func (c *collector) entries(s *ast.ValueSpec) bool {
	literal, ok := s.Values[0].(*ast.CompositeLit)
	if !ok {
		return false
	}
	if _, ok := literal.Type.(*ast.MapType); !ok {
		return false
	}
	for _, element := range literal.Elts {
		if entry, ok := element.(*ast.KeyValueExpr); ok {
			c.add(s.Names[0].Name+"["+c.text(entry.Key)+"]", entry)
		}
	}
	return true
}

// specs adds the end-to-end specs in a value by themselves: calls such as ginkgo.It("…", …).
func (c *collector) specs(s *ast.ValueSpec) bool {
	found := false
	ast.Inspect(s.Values[0], func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name, isText := call.Args[0].(*ast.BasicLit)
		method, isMethod := call.Fun.(*ast.SelectorExpr)
		if !isText || !isMethod || !strings.HasSuffix(method.Sel.Name, "It") {
			return true
		}
		found = true
		c.add("spec "+name.Value, call)
		return false
	})
	return found
}

// keepReachable removes everything but the fields of types that a field of the type leads to.
func keepReachable(all map[string]declaration, from string) {
	fields := map[string][]declaration{}
	for _, d := range all {
		owner, _, _ := strings.Cut(d.name, ".")
		fields[owner] = append(fields[owner], d)
	}
	reached, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		owner := next[0]
		next = next[1:]
		for _, d := range fields[owner] {
			for _, name := range d.leadsTo {
				if _, known := fields[name]; known && !reached[name] {
					reached[name] = true
					next = append(next, name)
				}
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, d declaration) bool {
		owner, _, _ := strings.Cut(strings.TrimPrefix(d.name, "type "), ".")
		return !reached[owner]
	})
}

// A change is a declaration before and after; one of them is nil if it was added or removed.
type change struct {
	before, after *declaration
}

// compare lists what differs, in the order of the keys. A package or type that is new, or gone, is
// one change, with all that it has in its text.
func compare(before, after map[string]declaration) []change {
	before, after = joined(before, after), joined(after, before)
	keys := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(keys)
	var changes []change
	for _, key := range slices.Compact(keys) {
		b, was := before[key]
		a, is := after[key]
		switch {
		case !was:
			changes = append(changes, change{after: &a})
		case !is:
			changes = append(changes, change{before: &b})
		case a.text != b.text:
			changes = append(changes, change{before: &b, after: &a})
		}
	}
	return changes
}

// joined are declarations in which each package that other lacks is one declaration, and so is
// each struct type.
func joined(all, other map[string]declaration) map[string]declaration {
	packages := map[string]bool{}
	for _, d := range other {
		packages[path.Dir(d.file)] = true
	}
	out := map[string]declaration{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		d := all[key]
		owner, _, isField := strings.Cut(d.name, ".")
		typeKey := path.Dir(d.file) + ".type " + owner
		_, typeStays := other[typeKey]
		_, typeIs := all[typeKey]
		switch {
		case !packages[path.Dir(d.file)]:
			join(out, path.Dir(d.file), "package "+path.Base(path.Dir(d.file)), d)
		case isField && typeIs && !typeStays:
			join(out, typeKey, "type "+owner, d)
		default:
			join(out, key, d.name, d)
		}
	}
	return out
}

// join adds a declaration to the one that has a key.
func join(all map[string]declaration, key, name string, d declaration) {
	whole, there := all[key]
	if there {
		whole.text += "\n" + d.text
	} else {
		whole = declaration{name: name, file: d.file, text: d.text}
	}
	all[key] = whole
}
