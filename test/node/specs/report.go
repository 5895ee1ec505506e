package specs

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2/types"
)

// reported is what Ginkgo says of a spec; neither field is set for one that passed.
type reported struct {
	failure, skipped string
}

// readReport reads Ginkgo's JSON report of a process that ran one spec.
func readReport(path, text string) (reported, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return reported{}, err
	}
	var suites []types.Report
	if err := json.Unmarshal(data, &suites); err != nil {
		return reported{}, fmt.Errorf("report of %q: %w", text, err)
	}
	var found []types.SpecReport
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			if r.LeafNodeType == types.NodeTypeIt && r.FullText() == text {
				found = append(found, r)
			}
		}
	}
	if len(found) != 1 {
		return reported{}, fmt.Errorf("report of %q: found %d specs of this text, expected 1", text, len(found))
	}
	return outcome(found[0]), nil
}

func outcome(r types.SpecReport) reported {
	switch {
	case r.State == types.SpecStatePassed:
		return reported{}
	case r.State == types.SpecStateSkipped && r.Failure.Message != "":
		return reported{skipped: r.Failure.Message}
	case r.Failure.Message == "":
		return reported{failure: "state " + r.State.String()}
	}
	return reported{failure: fmt.Sprintf("%s: %s\n%s", r.State, r.Failure.Message, r.Failure.Location)}
}
