package jobend_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func failedEnd() *jobpolicyv1.JobEnd {
	return &jobpolicyv1.JobEnd{
		Class: outOfMemory, Rule: jobpolicyv1.Rule_RULE_BACKOFF_LIMIT_EXCEEDED, PodName: "train-1", Tries: 2,
		Failures: []*jobpolicyv1.EndFailure{
			{PodName: "train-1", Index: proto.Int32(0), ContainerName: "main", ExitCode: 137, Reason: "OOMKilled"},
			{PodName: "train-0", ExitCode: 3, Signal: 9, Reason: "a b", TerminationMessage: `message=x] [pod="y" failed=z`},
			{},
		},
	}
}

const failedMessage = `Pod train-1 ran out of memory. [rule=backoffLimitExceeded pod=train-1 tries=2 ` +
	`failed="pod=train-1 index=0 container=main exitCode=137 reason=OOMKilled" ` +
	`failed="pod=train-0 exitCode=3 signal=9 reason=\"a b\" message=message=x] [pod=\"y\" failed=z" failed=]`

func TestFailedPodsStandBehindAllElse(t *testing.T) {
	end := failedEnd()
	if got := jobend.Message(end); got != failedMessage {
		t.Errorf("message\n%s\nwant\n%s", got, failedMessage)
	}
	if got, ok := jobend.Read("OutOfMemory", failedMessage); !ok || !proto.Equal(got, end) {
		t.Errorf("read as %v, %v; want %v", got, ok, end)
	}
}

// A reader that does not know a part ignores it. To one that is older than the failed pods they are such parts.
func TestReadersThatDoNotKnowFailedPods(t *testing.T) {
	want := failedEnd()
	want.Failures = nil
	older := strings.NewReplacer(` failed="`, ` partOfTomorrow="`, " failed=]", " partOfTomorrow=]").Replace(failedMessage)
	if got, ok := jobend.Read("OutOfMemory", older); !ok || !proto.Equal(got, want) {
		t.Errorf("read as %v, %v; want %v", got, ok, want)
	}
	before, _, _ := strings.Cut(failedMessage, " failed=")
	if got := jobend.Message(want); got != before+"]" {
		t.Errorf("without failed pods the message is\n%s\nwant\n%s]", got, before)
	}
}

// A message is never longer than the API allows: then the oldest failures are left out.
func TestAMessageIsNoLongerThanTheAPIAllows(t *testing.T) {
	for name, text := range map[string]string{"plain": "x", "quotes": `"`, "controls": "\x01", "separators": "\u2028"} {
		most := func(n int) string { return strings.Repeat(text, n/len(text)) }
		end := &jobpolicyv1.JobEnd{Class: outOfMemory, PodName: most(253), ContainerName: most(253), Reason: most(253), PolicyRuleName: most(63)}
		for i := range 10 {
			end.Failures = append(end.Failures, &jobpolicyv1.EndFailure{
				PodName: most(253), ContainerName: most(253), Reason: most(253), ExitCode: int32(i + 1), TerminationMessage: most(200),
			})
		}
		message := jobend.Message(end)
		got, ok := jobend.Read("OutOfMemory", message)
		n := len(got.GetFailures())
		if !ok || len(message) > 32768 || n == 0 || name == "plain" && n < 10 {
			t.Fatalf("%s: a message of %d bytes tells %d failures (%v)", name, len(message), n, ok)
		}
		end.Failures = end.Failures[:n]
		if !proto.Equal(got, end) {
			t.Errorf("%s: read as %v", name, got)
		}
	}
}

func TestTextsThatTellNoFailedPod(t *testing.T) {
	for _, part := range []string{"pod", "exitCode=many", `"pod=\"a"`, `"pod=a index=1 2"`} {
		if end, ok := jobend.Read("Policy", fmt.Sprintf("x [failed=%s]", part)); ok {
			t.Errorf("%s is read as %v", part, end)
		}
	}
	want := &jobpolicyv1.JobEnd{Class: policy, Failures: []*jobpolicyv1.EndFailure{{PodName: "p", TerminationMessage: "m"}}}
	if got, ok := jobend.Read("Policy", `x [failed="pod=p size=3 message=m"]`); !ok || !proto.Equal(got, want) {
		t.Errorf("a part of a newer version is read as %v, %v; want %v", got, ok, want)
	}
}

func TestTheLastLine(t *testing.T) {
	long := strings.Repeat("ä", 99) + "xyz" // 201 bytes; one of the two-byte characters would be cut.
	for message, want := range map[string]string{
		"":                            "",
		"\n \t\r\n\x00":               "",
		"one":                         "one",
		"one\ntwo\n\n":                "two",
		"one\r\ntwo \r\n \x00\n":      "two",
		"  a\tb\x1b[31mred\u202eleft": "a b [31mred left",
		"a\xff\u0085b":                "a� b",
		strings.Repeat("x", 200):      strings.Repeat("x", 200),
		strings.Repeat("x", 201):      strings.Repeat("x", 197) + "…",
		long:                          strings.Repeat("ä", 98) + "…",
		"first\n" + strings.Repeat("\U000e0001", 999) + "z": "z",
	} {
		got := jobend.LastLine(message)
		if got != want {
			t.Errorf("of %q the last line is %q, want %q", message, got, want)
		}
		if again := jobend.LastLine(got); again != got || len(got) > jobend.MaxLineBytes || !utf8.ValidString(got) {
			t.Errorf("%q (%d bytes) is cut again: %q", got, len(got), again)
		}
	}
}

func FuzzLastLine(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\x1b]0;x\a", strings.Repeat("ä\u2028", 200), strings.Repeat("\U000e0001", 300) + "x" + strings.Repeat("\U000e0001", 300) + "y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		line := jobend.LastLine(message)
		if len(line) > jobend.MaxLineBytes || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\x00\x1b") || jobend.LastLine(line) != line {
			t.Errorf("%q: %q", message, line)
		}
	})
}
