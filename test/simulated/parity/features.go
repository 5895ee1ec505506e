package parity

import (
	"strings"

	"jobpolicy.dev/test/simulated/jobspec"
)

// features are what a case covers: fields of the spec, with the values that matter, and
// kinds of steps.
func (c *Case) features() map[string]bool {
	set := map[string]bool{
		"pods that stay pending (manual)": c.Manual,
		"pods that are there before":      c.Before != "",
		"restarts of the controller":      c.inRestarts(),
	}
	c.specFeatures(set)
	for _, line := range c.Steps {
		steps, err := parseLine(line)
		if err != nil {
			continue
		}
		set["several steps at once"] = set["several steps at once"] || len(steps) > 1
		for _, st := range steps {
			set["step "+st.feature()] = true
		}
	}
	return set
}

// specFeatures are the fields of the spec, and their values.
func (c *Case) specFeatures(set map[string]bool) {
	for _, f := range jobspec.Fields {
		set[f.Name] = f.Has(&c.Spec)
		for _, v := range f.Values {
			set[f.Name+": "+v.Name] = v.Has(&c.Spec)
		}
	}
}

// feature is the kind of a step.
func (st step) feature() string {
	words := []string{st.verb}
	switch st.verb {
	case "delete", "edit":
		words = append(words, st.word(0))
	case "fail":
		if st.options["condition"] != "" {
			words = append(words, "with a condition")
		}
		if container := st.options["container"]; container != "" {
			words = append(words, "in", container)
		}
	}
	return strings.Join(words, " ")
}
