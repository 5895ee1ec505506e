package skew

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// A contract is the text of the proto files: what stands before each message, enum, field
// and enum value, by its name (DecideJobRequest.now).
type contract map[string]string

var (
	comment  = regexp.MustCompile(`^\s*//(.*)`)
	begins   = regexp.MustCompile(`^(?:message|enum) (\w+) \{(\}?)`)
	member   = regexp.MustCompile(`^  +(?:[\w.<>, ]+ )?(\w+) = \d+`)
	limit    = regexp.MustCompile(`(?i)at most (\d+)( MiB)?`)
	document = "jobpolicy/v1/*.proto"
)

func (c contract) read(text string) {
	var said []string
	in := ""
	for line := range strings.Lines(text) {
		name := ""
		if m := comment.FindStringSubmatch(line); m != nil {
			said = append(said, strings.TrimSpace(m[1]))
			continue
		}
		if m := begins.FindStringSubmatch(line); m != nil {
			in, name = m[1], m[1]
		} else if m := member.FindStringSubmatch(line); m != nil && in != "" {
			name = in + "." + m[1]
		}
		if name != "" {
			c[name] = strings.Join(said, " ")
		}
		said = nil
	}
}

func readContract(t *testing.T, tree string) contract {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree, "proto", document))
	if err != nil || len(files) == 0 {
		t.Fatalf("the contract in %s has %d files, error %v", tree, len(files), err)
	}
	c := contract{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		c.read(string(text))
	}
	return c
}

// lowered names the limits that are lower than before, or are not there any more.
func lowered(before, after contract) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := limit.FindAllStringSubmatch(before[name], -1), limit.FindAllStringSubmatch(after[name], -1)
		for i := range was {
			if i >= len(is) || was[i][2] != is[i][2] || number(was[i][1]) > number(is[i][1]) {
				found = append(found, fmt.Sprintf("%s had the limit %q", name, was[i][0]))
			}
		}
	}
	return found
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // The pattern has digits only.
	return n
}

// withoutCapability names what came into the messages and enums of requests, and has no
// capability. Unknown fields with the numbers 1000 to 1999 are ignored, and need none.
func withoutCapability(before, after contract, requests map[string]protoreflect.FieldNumber) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		in, _, _ := strings.Cut(name, ".")
		_, hadParent := before[in]
		_, hadIt := before[name]
		if ignorable := requests[name] >= 1000 && requests[name] <= 1999; hadParent && !hadIt && !ignorable && !strings.Contains(after[name], "CAPABILITY_") {
			found = append(found, name)
		}
	}
	return found
}

// inRequests is every field and enum value that a request may have, with its number.
// Those of enums count as 0.
func inRequests() map[string]protoreflect.FieldNumber {
	found := map[string]protoreflect.FieldNumber{}
	seen := map[protoreflect.FullName]bool{}
	var add func(m protoreflect.MessageDescriptor)
	add = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] || m.ParentFile().Package() != "jobpolicy.v1" {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			field := m.Fields().Get(i)
			found[string(m.Name())+"."+string(field.Name())] = field.Number()
			if field.Message() != nil && !field.IsMap() {
				add(field.Message())
			}
			if enum := field.Enum(); enum != nil {
				for j := range enum.Values().Len() {
					found[string(enum.Name())+"."+string(enum.Values().Get(j).Name())] = 0
				}
			}
		}
	}
	methods := jobpolicyv1grpc.File_jobpolicy_v1_policy_service_proto.Services().ByName("PolicyService").Methods()
	for i := range methods.Len() {
		add(methods.Get(i).Input())
	}
	return found
}

// Since the last release no limit of the contract was lowered, and what came into
// requests names the capability that tells a caller of it.
func TestTheContractKeepsWhatTheLastReleasePromised(t *testing.T) {
	before, after, requests := readContract(t, lastRelease(t)), readContract(t, root), inRequests()
	for name := range requests {
		if _, found := after[name]; !found {
			t.Errorf("%s is not found in the text of the contract", name)
		}
	}
	for _, problem := range lowered(before, after) {
		t.Errorf("%s, and has it no more: limits are raised, never lowered", problem)
	}
	for _, name := range withoutCapability(before, after, requests) {
		t.Errorf("%s came after the last release: its comment must name a Capability of its own, which GetServerInfo lists", name)
	}
}

func TestBrokenPromisesAreFound(t *testing.T) {
	read := func(text string) contract {
		c := contract{}
		c.read(text)
		return c
	}
	before := read(`
// A Request may have at most 16 MiB.
message Request {
  // At most 128 bytes.
  string id = 1;
  // Rows, at
  // most 1000.
  repeated bytes rows = 2;
  // At most 5.
  map<string, string> notes = 3;
}
enum Kind {
  KIND_UNSPECIFIED = 0;
}
`)
	after := read(`
// A Request may have at most 8 MiB.
message Request {
  // At most 256 bytes.
  string id = 1;
  // Rows, at
  // most 999.
  repeated bytes rows = 2;
  map<string, string> notes = 3;
  // Only with CAPABILITY_NEW.
  optional int32 told = 4;
  // Nobody knows of it.
  int32 untold = 5;
  int32 ignorable = 1000;
}
enum Kind {
  KIND_UNSPECIFIED = 0;
  // A kind.
  KIND_NEW = 1;
}
message New {
  int32 field = 1;
}
`)
	want := []string{`Request had the limit "at most 16 MiB"`, `Request.notes had the limit "At most 5"`, `Request.rows had the limit "at most 1000"`}
	must.Equal(t, "lowered limits", want, lowered(before, after))
	requests := map[string]protoreflect.FieldNumber{
		"Request.id": 1, "Request.rows": 2, "Request.notes": 3, "Request.told": 4, "Request.untold": 5, "Request.ignorable": 1000,
		"Kind.KIND_UNSPECIFIED": 0, "Kind.KIND_NEW": 0, "New.field": 1,
	}
	must.Equal(t, "without a capability", []string{"Kind.KIND_NEW", "Request.untold"}, withoutCapability(before, after, requests))
}
