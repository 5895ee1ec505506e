package manifest

import (
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
	node, line := l.root, l.root.Line
	for _, step := range steps(path) {
		next, at := child(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line + l.offset
}

// steps cuts a path: a.b[0].c is a, b, 0, c.
func steps(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", ""), ".")
}

// child returns the node to which a step leads, and the line of its key.
func child(node *yaml.Node, step string) (*yaml.Node, int) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
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
