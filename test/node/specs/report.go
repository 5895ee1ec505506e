package specs

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/onsi/ginkgo/v2/types"
)

// reported is what Ginkgo says of a spec; neither field is set for one that passed.
type reported struct {
	failure, skipped string
}

// Texts reads the texts of all specs in one of Ginkgo's JSON reports, that of a dry run for example.
func Texts(path string) ([]string, error) {
	reports, err := readReports(path)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, r := range reports {
		texts = append(texts, r.FullText())
	}
	return texts, nil
}

// readReport reads Ginkgo's JSON report of a process that ran one spec.
func readReport(path, text string) (reported, error) {
	reports, err := readReports(path)
	if err != nil {
		return reported{}, err
	}
	found := slices.DeleteFunc(reports, func(r types.SpecReport) bool { return r.FullText() != text })
	if len(found) != 1 {
		return reported{}, fmt.Errorf("report of %q: found %d specs of this text, expected 1", text, len(found))
	}
	return outcome(found[0]), nil
}

// readReports reads what one of Ginkgo's JSON reports says of each spec.
func readReports(path string) ([]types.SpecReport, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var suites []types.Report
	if err := json.Unmarshal(data, &suites); err != nil {
		return nil, fmt.Errorf("report %s: %w", path, err)
	}
	var found []types.SpecReport
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			if r.LeafNodeType == types.NodeTypeIt {
				found = append(found, r)
			}
		}
	}
	return found, nil
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
