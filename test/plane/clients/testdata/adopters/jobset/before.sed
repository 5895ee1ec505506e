# Prints JobSet's own failure policy under other names, to compare with it. What it does with a rule that matches is shared.
1i\
package controllers\
\
import (\
	"context"\
	"fmt"\
	"slices"\
\
	batchv1 "k8s.io/api/batch/v1"\
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"\
	"k8s.io/utils/ptr"\
	ctrl "sigs.k8s.io/controller-runtime"\
\
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"\
	"sigs.k8s.io/jobset/pkg/constants"\
)\

s/\(executeFailurePolicy\|findFirstFailedPolicyRuleAndJob\|ruleIsApplicable\)(/\1Before(/
/^func executeFailurePolicyBefore(/,/^}$/p
/^func findFirstFailedPolicyRuleAndJobBefore(/,/^}$/p
/^func ruleIsApplicableBefore(/,/^}$/p
