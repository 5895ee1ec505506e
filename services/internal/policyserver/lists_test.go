package policyserver

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestOverlongListIsFoundBeforeDecoding(t *testing.T) {
	one := (&jobpolicyv1.DecideJobRequest{}).ProtoReflect().Descriptor()
	batch := (&jobpolicyv1.DecideJobsRequest{}).ProtoReflect().Descriptor()
	rows := func(n int) *jobpolicyv1.DecideJobRequest {
		req := &jobpolicyv1.DecideJobRequest{}
		for range n {
			req.UnaccountedPods = append(req.UnaccountedPods, &jobpolicyv1.UnaccountedPod{})
		}
		return req
	}
	long := rows(maxEntries + 1)
	cases := map[string]struct {
		message proto.Message
		as      protoreflect.MessageDescriptor
		want    string
	}{
		"a list at the limit":    {rows(maxEntries), one, ""},
		"a list above the limit": {long, one, "unaccounted_pods"},
		"a list of bytes above the limit": {
			&jobpolicyv1.DecideJobRequest{ConfirmedReleases: make([][]byte, maxEntries+1)}, one, "confirmed_releases",
		},
		"a list above the limit further in": {
			&jobpolicyv1.DecideJobsRequest{Requests: []*jobpolicyv1.DecideJobRequest{{}, long}}, batch, "requests.unaccounted_pods",
		},
		"two lists that are only together above the limit": {
			&jobpolicyv1.DecideJobsRequest{Requests: []*jobpolicyv1.DecideJobRequest{rows(maxEntries), rows(maxEntries)}}, batch, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(tc.message)
			if err != nil {
				t.Fatal(err)
			}
			if got := overlongList(b, tc.as); got != tc.want {
				t.Errorf("overlongList() = %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzOverlongListStandsAnyBytes(f *testing.F) {
	for _, seed := range []string{"", "\xff", "\x3a\x00", "\x3a\x7f", "\x1a\x02\x0a\x7f", strings.Repeat("\x3b", 1000)} {
		f.Add([]byte(seed))
	}
	m := (&jobpolicyv1.DecideJobsRequest{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := overlongList(b, m); got != "" && len(b) < maxEntries {
			t.Errorf("overlongList() = %q in %d bytes", got, len(b))
		}
	})
}
