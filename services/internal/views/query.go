package views

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Parameters of the queries.
const (
	byNamespace = "namespace"
	byName      = "name"
	byCondition = "condition"
	asFormat    = "format"
)

// refused says what is wrong with a query. It refuses unknown parameters: a user who
// mistypes one would take the whole list for a selection.
func refused(query url.Values, known ...string) error {
	for name := range query {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown parameter %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// matches reports whether a query selects an object.
func matches(query url.Values, namespace, name string) bool {
	return (!query.Has(byNamespace) || query.Get(byNamespace) == namespace) && (!query.Has(byName) || query.Get(byName) == name)
}

func writeJSON(w http.ResponseWriter, list any) {
	body, err := json.Marshal(list)
	if err != nil {
		http.Error(w, "internal error: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // The reader may be gone.
}
