package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestDevelVersionNamesTheCommit(t *testing.T) {
	cases := map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"nothing was recorded": {want: "devel"},
		"a clean tree": {
			settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "0123456789abcdef0123"},
				{Key: "vcs.modified", Value: "false"},
			},
			want: "devel+0123456789ab",
		},
		"a changed tree": {
			settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "0123456789abcdef0123"},
				{Key: "vcs.modified", Value: "true"},
			},
			want: "devel+0123456789ab.dirty",
		},
		"a short hash": {
			settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}},
			want:     "devel+0123",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := develVersion(tc.settings); got != tc.want {
				t.Errorf("develVersion() = %q, want %q", got, tc.want)
			}
		})
	}
}
