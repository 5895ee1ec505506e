package wire

import "strings"

// DefaultPolicy is the annotation of a namespace that names the JobPolicy of those in it that have no annotation Policy.
const DefaultPolicy = "jobpolicy.dev/default-policy"

// PolicyName is the name of the JobPolicy that an object asks for by its annotation; false if it asks for none by
// name: it has no such annotation, or one that holds options itself.
func PolicyName(annotations map[string]string) (name string, named bool) {
	name, has := annotations[Policy]
	if !has || strings.HasPrefix(strings.TrimSpace(name), "{") {
		return "", false
	}
	return name, true
}
