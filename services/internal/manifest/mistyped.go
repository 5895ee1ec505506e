package manifest

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mistyped lists the fields whose values do not have the type that the API requires. The
// decoder knows only the first one, without the index in a list; err is what it says.
func mistyped(data []byte, t reflect.Type, err error) []Problem {
	if found := wrongValues("", data, t); len(found) > 0 {
		return found
	}
	return []Problem{{Text: err.Error()}}
}

// wrongValues finds the values in data that do not have the type t, or that of a field of t.
func wrongValues(path string, data stdjson.RawMessage, t reflect.Type) []Problem {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case string(data) == "null":
		return nil
	case reflect.PointerTo(t).Implements(reflect.TypeFor[stdjson.Unmarshaler]()):
	case t.Kind() == reflect.Struct:
		return wrongFields(path, data, t)
	case t.Kind() == reflect.Map:
		return wrongEntries(path, data, t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return wrongItems(path, data, t)
	}
	if stdjson.Unmarshal(data, reflect.New(t).Interface()) == nil {
		return nil
	}
	return []Problem{wrong(path, data, t)}
}

func wrongFields(path string, data stdjson.RawMessage, t reflect.Type) []Problem {
	var values map[string]stdjson.RawMessage
	if stdjson.Unmarshal(data, &values) != nil {
		return []Problem{wrong(path, data, t)}
	}
	var found []Problem
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			found = append(found, wrongFields(path, data, f.Type)...)
		} else if value, ok := values[name]; ok {
			found = append(found, wrongValues(join(path, name), value, f.Type)...)
		}
	}
	return found
}

func wrongEntries(path string, data stdjson.RawMessage, t reflect.Type) []Problem {
	var values map[string]stdjson.RawMessage
	if stdjson.Unmarshal(data, &values) != nil {
		return []Problem{wrong(path, data, t)}
	}
	var found []Problem
	for _, key := range slices.Sorted(maps.Keys(values)) {
		found = append(found, wrongValues(join(path, key), values[key], t.Elem())...)
	}
	return found
}

func wrongItems(path string, data stdjson.RawMessage, t reflect.Type) []Problem {
	var values []stdjson.RawMessage
	if stdjson.Unmarshal(data, &values) != nil {
		return []Problem{wrong(path, data, t)}
	}
	var found []Problem
	for i, value := range values {
		found = append(found, wrongValues(fmt.Sprintf("%s[%d]", path, i), value, t.Elem())...)
	}
	return found
}

// wrong says what type was expected of a value. It repeats the value if that has the right
// kind but not the right form.
func wrong(path string, data stdjson.RawMessage, t reflect.Type) Problem {
	expected, got := typeWord(t), valueWord(data)
	switch {
	case got == "a number" && t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		if bytes.ContainsAny(data, ".eE") {
			return Problem{Path: path, Text: fmt.Sprintf("%s: expected %s", data, expected)}
		}
		most := uint64(1)<<(t.Bits()-1) - 1
		return Problem{Path: path, Text: fmt.Sprintf("%s: expected %s from -%d to %d", data, expected, most+1, most)}
	case got == "a text" && (t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[metav1.Time]()):
		var text string
		_ = stdjson.Unmarshal(data, &text) // valueWord has read its quotation mark
		return Problem{Path: path, Text: fmt.Sprintf("%q: expected %s", text, expected)}
	}
	return Problem{Path: path, Text: fmt.Sprintf("expected %s, got %s", expected, got)}
}

// typeWord is the usual word for a type.
func typeWord(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return "a quantity such as 500m or 1Gi"
	case reflect.TypeFor[metav1.Time]():
		return "a time such as 2026-03-28T00:00:00Z"
	case reflect.TypeFor[intstr.IntOrString]():
		return "a whole number or a text"
	}
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

// valueWord is the usual word for a value.
func valueWord(data stdjson.RawMessage) string {
	switch data[0] {
	case '"':
		return "a text"
	case '[':
		return "a list"
	case '{':
		return "fields"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

// join is the path of a field. A key with dots, as labels have, stands in brackets.
func join(path, key string) string {
	switch {
	case strings.Contains(key, "."):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
