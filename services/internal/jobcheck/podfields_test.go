package jobcheck

import (
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// Each line of podFields names a type and a field of a CronJob, its Job or its pods, and no line is there twice.
func TestPodFieldsExist(t *testing.T) {
	known := map[string]bool{}
	var visit func(t reflect.Type, outer string)
	visit = func(t reflect.Type, outer string) {
		switch {
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
			visit(t.Elem(), "")
		case t.Kind() == reflect.Struct && (outer != "" || !known[t.Name()]):
			known[t.Name()] = true
			for i := range t.NumField() {
				f := t.Field(i)
				known[t.Name()+"."+jsonName(f)] = true
				if outer != "" {
					known[outer+"."+jsonName(f)] = true
				}
				if f.Anonymous && f.Type.Kind() == reflect.Struct {
					visit(f.Type, t.Name())
				} else {
					visit(f.Type, "")
				}
			}
		}
	}
	visit(reflect.TypeFor[batchv1.CronJobSpec](), "")
	lines := 0
	for line := range strings.Lines(podFields) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		lines++
		if !known[words[0]] {
			t.Errorf("%s is not in a CronJob", words[0])
		}
	}
	if lines != len(fieldRules) {
		t.Errorf("%d lines, %d rules: one is there twice", lines, len(fieldRules))
	}
}
