package manifest_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/testenv"
)

// The table of docs/policy.md has a row for each field that has a value, and no other row.
func TestTheDocumentHasEachField(t *testing.T) {
	var want, got []string
	values("", (&jobpolicyv1.PolicySpec{}).ProtoReflect().Descriptor(), func(path string) { want = append(want, path) })
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:job|cronJob)\\.[a-zA-Z.\\[\\]]+)` \\|").FindAllSubmatch(testenv.ReadFile(t, "../../../docs/policy.md"), -1) {
		got = append(got, string(row[1]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of the table (-contract +document):\n%s", diff)
	}
}

// values calls f with the path of each field that is no message, at any depth.
func values(path string, message protoreflect.MessageDescriptor, f func(path string)) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		at := path + field.JSONName()
		if field.IsList() {
			at += "[]"
		}
		if field.Message() == nil {
			f(at)
			continue
		}
		values(at+".", field.Message(), f)
	}
}
