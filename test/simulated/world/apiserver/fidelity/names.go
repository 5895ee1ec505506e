package fidelity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// names replaces the values that a server has chosen by tokens that are the same on both
// sides.
type names struct {
	tokens map[string]string // UID or generated name → token
	values map[string]string // and back
	uids   int
	// versions are the resource versions seen of each object, by UID.
	versions map[string][]string
}

func newNames() *names {
	return &names{tokens: map[string]string{}, values: map[string]string{}, versions: map[string][]string{}}
}

func (n *names) add(value, token string) {
	n.tokens[value], n.values[token] = token, value
}

// learn records the new UIDs, names and versions of an object, or of each object of a list.
// With aside it records no versions.
func (n *names) learn(obj map[string]any, aside bool) {
	for _, list := range []string{"items", "rows"} {
		items, _ := obj[list].([]any)
		for _, item := range items {
			if one, ok := item.(map[string]any); ok {
				n.learn(one, aside)
			}
		}
	}
	if row, ok := obj["object"].(map[string]any); ok {
		n.learn(row, aside)
		return
	}
	meta, _ := obj["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	if uid == "" {
		return
	}
	name, _ := meta["name"].(string)
	if _, known := n.tokens[uid]; !known {
		n.uids++
		n.add(uid, fmt.Sprintf("<uid %d>", n.uids))
		if root, _ := meta["generateName"].(string); root != "" && strings.HasPrefix(name, root) && len(name) == len(root)+5 {
			n.add(name, fmt.Sprintf("%s<%d>", root, n.uids))
		}
	}
	version, _ := meta["resourceVersion"].(string)
	if version != "" && !aside && !slices.Contains(n.versions[uid], version) {
		n.versions[uid] = append(n.versions[uid], version)
	}
}

// actual replaces tokens by the side's own values.
func (n *names) actual(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	for token, value := range n.values {
		text = strings.ReplaceAll(text, token, value)
	}
	return text
}

var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4} [A-Z]+)( m=[+-][\d.]+)?`)
	uids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// versions are the places in messages that name a resource version.
	versions = regexp.MustCompile(`((?:[Rr]esource ?[Vv]ersion(?: in (?:the )?(?:precondition|record|object meta))?|, current)(?:: | \())\d+`)
	// generated are names that were made for an object that was refused.
	generated = regexp.MustCompile(`\b(gen\d*-|Bad_Gen)[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
)

// comparable replaces the side's own values by tokens.
func (n *names) comparable(text string) string {
	text = versions.ReplaceAllString(times.ReplaceAllString(text, "<time>"), "${1}<version>")
	text = uids.ReplaceAllStringFunc(text, func(uid string) string {
		if token, known := n.tokens[uid]; known {
			return token
		}
		return uid
	})
	for _, value := range n.longestFirst() {
		text = strings.ReplaceAll(text, value, n.tokens[value])
	}
	return generated.ReplaceAllString(text, "${1}<generated>")
}

func (n *names) longestFirst() []string {
	var values []string
	for value := range n.tokens {
		if !uids.MatchString(value) {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return values
}

// normal makes a body comparable.
func (n *names) normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return n.normalObject(v)
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = n.normal(one)
		}
		return out
	case string:
		return n.comparable(v)
	}
	return v
}

func (n *names) normalObject(obj map[string]any) map[string]any {
	out := map[string]any{}
	uid, _ := obj["uid"].(string)
	for k, v := range obj {
		switch k {
		case "managedFields":
		case "resourceVersion":
			out[k] = n.version(uid, v)
		case "continue":
			out[k] = "<token>"
		case "cells":
			out[k] = withoutAges(n.normal(v))
		default:
			out[n.comparable(k)] = n.normal(v)
		}
	}
	return out
}

// version replaces a resource version by its number among the versions of its object. The
// versions of lists and references are not compared.
func (n *names) version(uid string, v any) any {
	text, _ := v.(string)
	if uid == "" {
		return text != ""
	}
	return fmt.Sprintf("<version %d>", slices.Index(n.versions[uid], text)+1)
}

var ages = regexp.MustCompile(`^\d+[smh]$`)

// withoutAges makes the row of a table comparable.
func withoutAges(v any) any {
	cells, _ := v.([]any)
	for i, cell := range cells {
		if text, ok := cell.(string); ok && ages.MatchString(text) {
			cells[i] = "<age>"
		}
	}
	return v
}
