package manifest

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// mistyped says at which field a value does not have the type that the API requires.
func mistyped(data []byte, err error) Problem {
	var wrong *stdjson.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return Problem{Path: wrong.Field, Text: fmt.Sprintf("expected %s, got %s", typeWord(wrong.Type), valueWord(wrong.Value))}
	}
	if errors.Is(err, resource.ErrFormatWrong) {
		var document any
		if stdjson.Unmarshal(data, &document) == nil {
			if path, text := wrongQuantity("", document, false); path != "" {
				return Problem{Path: path, Text: fmt.Sprintf("%q: expected a quantity such as 500m or 1Gi", text)}
			}
		}
	}
	return Problem{Text: err.Error()}
}

// typeWord is the usual word for a type.
func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text, in quotes if it looks like something else"
	case reflect.Slice:
		return "a list"
	}
	return "fields"
}

// valueWord is the usual word for the value that was read: string, number 3, array, object
// or bool.
func valueWord(value string) string {
	switch word, _, _ := strings.Cut(value, " "); word {
	case "string":
		return "a text"
	case "number":
		return "a number"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "fields"
}

// quantityLists are fields of a pod template that hold quantities.
var quantityLists = []string{"requests", "limits"}

// wrongQuantity finds the first text of requests or limits that is no quantity.
func wrongQuantity(path string, v any, inList bool) (at, text string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if value, ok := v[key].(string); ok && inList {
				if _, err := resource.ParseQuantity(value); err != nil {
					return join(path, key), value
				}
			}
			if at, text := wrongQuantity(join(path, key), v[key], slices.Contains(quantityLists, key)); at != "" {
				return at, text
			}
		}
	case []any:
		for i := range v {
			if at, text := wrongQuantity(fmt.Sprintf("%s[%d]", path, i), v[i], false); at != "" {
				return at, text
			}
		}
	}
	return "", ""
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
