package servicemain

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestHeadroom(t *testing.T) {
	const bytes = 16 << 20
	cases := map[string]struct {
		env  map[string]string
		want bool
	}{
		"there is some":                    {want: true},
		"GOGC is the user's word":          {env: map[string]string{"GOGC": "50"}},
		"so is GOMEMLIMIT":                 {env: map[string]string{"GOMEMLIMIT": "400MiB"}},
		"a variable without a value":       {env: map[string]string{"GOGC": ""}, want: true},
		"another variable changes nothing": {env: map[string]string{"GODEBUG": "http2debug=0"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"GOGC", "GOMEMLIMIT"} {
				t.Setenv(v, "")
			}
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			before := heapGoal()
			spare := headroom(bytes)
			grown := heapGoal() >= before+bytes
			runtime.KeepAlive(spare)
			if grown != tc.want {
				t.Errorf("the heap may grow by %d bytes: %v, want %v", bytes, grown, tc.want)
			}
		})
	}
}

// heapGoal is the size at which the heap will be collected next.
func heapGoal() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
