package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lines finds fields in a document.
type lines struct {
	root *yaml.Node
	// offset is how many lines of the file come before the document.
	offset int
}

// of is the line of a path such as spec.rules[0].action, or of the longest part of the
// path that exists; 0 for an object that was not read from a file.
func (l lines) of(path string) int {
	if l.root == nil {
		return 0
	}
	_, line := l.find(path)
	return line + l.offset
}

// in are the lines of the object at a path.
func (l lines) in(path string) lines {
	node, _ := l.find(path)
	return lines{root: node, offset: l.offset}
}

// find returns the node of the longest part of a path that exists, and the line of its key.
func (l lines) find(path string) (*yaml.Node, int) {
	node, line := l.root, l.root.Line
	for _, step := range steps(path) {
		next, at := child(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return node, line
}

// repeated lists the fields that a mapping has more than once, in a node and all below it.
// What an alias repeats is found at its anchor.
func (l lines) repeated(path string, node *yaml.Node) []Problem {
	var found []Problem
	switch node.Kind {
	case yaml.MappingNode:
		first, told := map[string]int{}, map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			at := join(path, key.Value)
			line, again := first[key.Value]
			switch {
			case !again:
				first[key.Value] = key.Line
			case !told[key.Value]:
				told[key.Value] = true
				found = append(found, Problem{Path: at, Text: fmt.Sprintf("duplicate field, first on line %d", line+l.offset)})
			}
			found = append(found, l.repeated(at, node.Content[i+1])...)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			found = append(found, l.repeated(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	}
	return found
}

// steps cuts a path: a.b[0].c is a, b, 0, c. What is in brackets is one step.
func steps(path string) []string {
	var all []string
	for path != "" {
		end := strings.IndexAny(path, ".[")
		if rest, ok := strings.CutPrefix(path, "["); ok {
			path, end = rest, strings.Index(rest, "]")
		}
		if end < 0 {
			return append(all, path)
		}
		if end > 0 {
			all = append(all, path[:end])
		}
		path = strings.TrimLeft(path[end:], "].")
	}
	return all
}

// child returns the node to which a step leads, and the line of its key. Of a repeated key the
// last counts, as for the API server.
func child(node *yaml.Node, step string) (*yaml.Node, int) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := len(node.Content) - 2; i >= 0; i -= 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	}
	return nil, 0
}
