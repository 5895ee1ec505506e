package hostnode

import "strings"

// expand replaces every $(NAME) in s by the value of that variable, as the Kubernetes API defines it for command, args
// and env: $$ stands for a dollar sign, so $$(NAME) is never expanded, and a reference to an unknown variable stays as
// it is written.
func expand(s string, vars map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text, rest := expandDollar(after, vars)
		b.WriteString(text)
		s = rest
	}
}

// expandDollar reads what follows a dollar sign and returns its replacement (the dollar included) and the unread rest.
func expandDollar(after string, vars map[string]string) (text, rest string) {
	if after == "" {
		return "$", ""
	}
	if after[0] == '$' {
		return "$", after[1:]
	}
	if after[0] != '(' {
		return "$" + after[:1], after[1:]
	}
	name, rest, closed := strings.Cut(after[1:], ")")
	if !closed {
		return "$(", after[1:]
	}
	if value, known := vars[name]; known {
		return value, rest
	}
	return "$(" + name + ")", rest
}

func expandAll(list []string, vars map[string]string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = expand(s, vars)
	}
	return out
}
