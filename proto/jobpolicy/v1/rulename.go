package jobpolicyv1

import "strings"

// Name is the rule as metrics, traces and documents spell it, for example
// backoffLimitExceeded. It is empty for no rule, and "unknown" for one that this
// version of the contract does not have.
func (r Rule) Name() string {
	text, known := Rule_name[int32(r)]
	switch {
	case r == Rule_RULE_UNSPECIFIED:
		return ""
	case !known:
		return "unknown"
	}
	words := strings.Split(strings.ToLower(strings.TrimPrefix(text, "RULE_")), "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}
