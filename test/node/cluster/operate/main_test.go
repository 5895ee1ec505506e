package operate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/node/cluster/shared"
)

// imageDirs are the folders of images: the version that is installed, and the
// next one.
var imageDirs = []string{"images", "images-next"}

// nextTag is the tag of the next version's images.
const nextTag = "v0.0.1-dev"

// long is set where everything is played at length.
var long = os.Getenv("JOBPOLICY_TEST_CLUSTER") == "all"

var (
	away     = flag.Duration("operate.away", choose(30*time.Second, 10*time.Minute), "how long no engine answers")
	switches = flag.Int("operate.switches", choose(4, 16), "how often Jobs change their controller")
)

func choose[T any](quick, whole T) T {
	if long {
		return whole
	}
	return quick
}

// top is the top folder of the repository.
var top string

// patience bounds the wait for anything.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	images, err := images()
	if err == nil {
		top, err = filepath.Abs(filepath.Join("..", "..", "..", ".."))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(shared.Main(m, cluster.Options{
		Images:        images,
		WithoutEngine: true, WithoutExecutor: true,
		ControllerManagerControllers: "*",
	}))
}

// images are the files with the images of both versions. Whether they are there
// is for the cluster to say: without one, nothing is asked of them.
func images() ([]string, error) {
	dir, err := executables.Dir()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, images := range imageDirs {
		for _, service := range []string{"jobpolicy-engine", "jobpolicy-executor"} {
			files = append(files, filepath.Join(dir, images, service+".tar"))
		}
	}
	return files, nil
}
