package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
)

func testPorts(t *testing.T, file string, taken ...int) *portSet {
	t.Helper()
	s, err := loadPorts(file)
	must.Succeed(t, err)
	s.taken = func(port int) bool {
		for _, p := range taken {
			if p == port {
				return true
			}
		}
		return false
	}
	return s
}

func choose(t *testing.T, s *portSet, names ...string) {
	t.Helper()
	must.Succeed(t, s.choose(names))
}

func TestPortsAreDistinctAndInRange(t *testing.T) {
	s := testPorts(t, filepath.Join(t.TempDir(), "ports.json"))
	var names []string
	for i := range 500 {
		names = append(names, strings.Repeat("x", i+1))
	}
	choose(t, s, names...)
	seen := map[int]bool{}
	for name, port := range s.ports {
		if seen[port] {
			t.Errorf("port %d is given twice", port)
		}
		seen[port] = true
		if port < freeport.ControlPlane.First || port > freeport.ControlPlane.Last {
			t.Errorf("port %d of %d letters is out of range", port, len(name))
		}
	}
	if len(seen) != len(names) {
		t.Errorf("%d ports for %d names", len(seen), len(names))
	}
}

func TestPortsOfAnEarlierRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	first := testPorts(t, file)
	choose(t, first, "a")
	choose(t, first, "b")

	t.Run("are used again", func(t *testing.T) {
		again := testPorts(t, file)
		choose(t, again, "a", "b")
		must.Equal(t, "ports", first.ports, again.ports)
	})
	t.Run("are replaced where another process has them", func(t *testing.T) {
		again := testPorts(t, file, first.ports["a"])
		choose(t, again, "a", "b")
		if again.ports["a"] == first.ports["a"] {
			t.Error("a taken port was used again")
		}
		if again.ports["b"] != first.ports["b"] {
			t.Error("a free port was replaced")
		}
		saved := testPorts(t, file)
		must.Equal(t, "saved ports", again.ports, saved.ports)
	})
}

func TestNoFreePort(t *testing.T) {
	s := testPorts(t, filepath.Join(t.TempDir(), "ports.json"))
	s.taken = func(int) bool { return true }
	if err := s.choose([]string{"a"}); err == nil {
		t.Errorf("chose %v", s.ports)
	}
}

func TestDamagedPortsFileIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	must.Succeed(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := loadPorts(file)
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error does not name the file: %v", err)
	}
}
