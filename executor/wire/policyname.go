package wire

import "strings"

// PolicyName is the name of the JobPolicy that an object asks for by its annotation; false if it asks for none by
// name: it has no such annotation, or one that holds options itself.
func PolicyName(annotations map[string]string) (name string, named bool) {
	name, has := annotations[Policy]
	if !has || strings.HasPrefix(strings.TrimSpace(name), "{") {
		return "", false
	}
	return name, true
}
