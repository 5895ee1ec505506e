package jobend_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	outOfMemory    = jobpolicyv1.EndClass_END_CLASS_OUT_OF_MEMORY
	policy         = jobpolicyv1.EndClass_END_CLASS_POLICY
	infrastructure = jobpolicyv1.EndClass_END_CLASS_INFRASTRUCTURE
)

// maxName is how long names may be in a message that tells all failures, whatever their characters are.
const maxName = 300

func TestMessages(t *testing.T) {
	cases := map[string]struct {
		end  *jobpolicyv1.JobEnd
		want string
	}{
		"a container": {
			&jobpolicyv1.JobEnd{
				Class: outOfMemory, Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED, PodName: "train-0-x7k2p", Index: proto.Int32(0),
				ContainerName: "main", ExitCode: 137, Reason: "OOMKilled", Tries: 3,
			},
			"Container main of pod train-0-x7k2p ran out of memory. " +
				"[rule=backoffLimitExceeded pod=train-0-x7k2p index=0 container=main exitCode=137 reason=OOMKilled tries=3]",
		},
		"a named rule": {
			&jobpolicyv1.JobEnd{
				Class: policy, Rule: jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED, PolicyRuleIndex: proto.Int32(1),
				PolicyRuleName: "gpu fault", PodName: "p", ContainerName: "main", ExitCode: 42, Signal: 9,
			},
			"Container main of pod p failed with exit code 42, as rule gpu fault of the pod failure policy describes. " +
				`[rule=podFailurePolicyMatched policyRule=1 policyRuleName="gpu fault" pod=p container=main exitCode=42 signal=9]`,
		},
		"a container that had more memory": {
			&jobpolicyv1.JobEnd{
				Class: outOfMemory, PodName: "p", ContainerName: "main", ExitCode: 137, Tries: 3,
				RaisedResource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, RaisedBy: 2.25,
			},
			"Container main of pod p ran out of memory with 2.25 times the memory of the template, or the most that it may have. [pod=p container=main exitCode=137 tries=3 raised=Memory:2.25]",
		},
		"a name like parts": {
			&jobpolicyv1.JobEnd{Class: infrastructure, PodName: `a [rule="b"]`, Reason: "x=y"},
			`Pod a _rule__b__ was ended from outside: x_y. [pod="a [rule=\"b\"]" reason="x=y"]`,
		},
		"nothing known": {&jobpolicyv1.JobEnd{Class: jobpolicyv1.EndClass_END_CLASS_UNKNOWN}, "It is not known why the Job failed. []"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := jobend.Message(tc.end); got != tc.want {
				t.Errorf("message\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// What is written is read again, whatever the names are.
func FuzzWhatIsWrittenIsRead(f *testing.F) {
	for i, name := range []string{"", "main", "a b", " [", "]", `"`, "=", "rule=x", "ü\x00\n", "\xff"} {
		f.Add(int32(i), int32(i), name, int32(-i), int32(1<<31-1-i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, class, rule int32, name string, n, m int32, indexed bool) {
		name = strings.ToValidUTF8(name, "?")
		want := &jobpolicyv1.JobEnd{
			Class: jobpolicyv1.EndClass(1 + uint32(class)%uint32(len(jobpolicyv1.EndClass_name)-1)),
			Rule:  jobpolicyv1.Rule(uint32(rule) % 10), PolicyRuleName: name, PodName: name, ContainerName: name, Reason: name,
			ExitCode: n, Signal: m, Tries: n,
		}
		if n > 0 {
			want.RaisedResource, want.RaisedBy = jobpolicyv1.RaisedResource(1+n%2), float64(n)*1.1e30
		}
		if len(name) < maxName {
			want.Failures = []*jobpolicyv1.EndFailure{
				{PodName: name, ContainerName: name, ExitCode: n, Reason: name, TerminationMessage: name},
				{PodName: name, Index: proto.Int32(m), Signal: m, TerminationMessage: jobend.LastLine(name)},
			}
		}
		if indexed {
			want.Index, want.PolicyRuleIndex = proto.Int32(n), proto.Int32(m)
		}
		message := jobend.Message(want)
		got, ok := jobend.Read(jobend.ClassName(want.GetClass()), message)
		if !ok || !proto.Equal(got, want) {
			t.Fatalf("%s\nread as %v, %v\nwant %v", message, got, ok, want)
		}
	})
}

func TestClassesAreReadByTheirNames(t *testing.T) {
	for number := range jobpolicyv1.EndClass_name {
		class := jobpolicyv1.EndClass(number)
		if class == jobpolicyv1.EndClass_END_CLASS_UNSPECIFIED {
			continue
		}
		if got, ok := jobend.ParseClass(jobend.ClassName(class)); got != class || !ok {
			t.Errorf("%s is read as %v, %v", jobend.ClassName(class), got, ok)
		}
	}
	for _, name := range []string{"", "Unspecified", "outOfMemory", "OutOfMemory ", "END_CLASS_OUT_OF_MEMORY", "3"} {
		if class, ok := jobend.ParseClass(name); ok {
			t.Errorf("%q is read as %v", name, class)
		}
	}
}

func TestOtherTextsAreNotRead(t *testing.T) {
	for _, text := range []struct{ reason, message string }{
		{"BackoffLimitExceeded", "x [rule=backoffLimitExceeded]"},
		{"Unspecified", "x []"},
		{"Policy", "Job has reached the specified backoff limit"},
		{"Policy", "x [pod=p"},
		{"Policy", "x [pod]"},
		{"Policy", "x [tries=many]"},
		{"Policy", "x [raised=Memory:much]"},
		{"Policy", "x [index=2147483648]"},
		{"Policy", `x [pod="p]`},
		{"Policy", `x [pod="p"index=1]`},
		{"Policy", "x [pod=a,b]"},
	} {
		if end, ok := jobend.Read(text.reason, text.message); ok {
			t.Errorf("%s: %s is read as %v", text.reason, text.message, end)
		}
	}
	want := &jobpolicyv1.JobEnd{Class: policy, PodName: "p"}
	if got, ok := jobend.Read("Policy", `x [rule=ofTomorrow pod=p size="new part"]`); !ok || !proto.Equal(got, want) {
		t.Errorf("a message of a newer version is read as %v, %v; want %v", got, ok, want)
	}
}
