# For scenarios of KEDA. Its external scaler says that as many messages wait as the file messages says. KEDA gets this answer only when a
# scenario lets it poll. Otherwise what it does would depend on what its cache shows when it happens to poll.

: >polls

# messages COUNT lets as many messages wait.
messages() { echo "$1" >new && mv new messages; }

# poll lets KEDA poll, and waits until it has done what it does then, and would poll again.
poll() { until_polls_anew touch next; }

# until_polls_anew COMMAND... runs a command, and waits until KEDA would poll after that.
until_polls_anew() {
	local had
	had=$(wc -c <polls)
	"$@"
	until [ "$(wc -c <polls)" -gt "$had" ]; do sleep 0.1; done
}

# scaledjob FIELDS COMMAND [JOB] makes or changes the ScaledJob a, whose pods run a command. FIELDS are some of its spec, JOB of that of its
# Jobs, in flow style, each with a comma behind it, as $POD of that of their pods.
scaledjob() {
	until_polls_anew apply_scaledjob "$@"
	until_true scaledjob/a Ready >/dev/null
}

# apply_scaledjob has KEDA's finalizer. Otherwise KEDA adds it by an update that changes the spec as well, and begins to poll twice.
apply_scaledjob() {
	local trigger template
	trigger="{type: external, metadata: {scalerAddress: \"$KEDA_SCALER\", folder: \"$PWD\"}}"
	template=$(pod "$2" | sed "s/{spec: {/&${POD:-}/")
	kubectl apply --server-side -f - <<-Y
		apiVersion: keda.sh/v1alpha1
		kind: ScaledJob
		metadata: {name: a, finalizers: [finalizer.keda.sh]}
		spec: {pollingInterval: 1, $1 triggers: [$trigger], jobTargetRef: {backoffLimit: 0, ${3:-} $template}}
	Y
}

# work [COMMAND] prints a command that ends when the scenario lets it, by another one.
work() { echo "until [ -e $PWD/all ] || rm $PWD/one 2>/dev/null; do sleep 0.3; done; ${1:-true}"; }
let_one_end() { touch one; }
let_all_end() { touch all; }

# jobs prints a line for each Job: how many of its pods are ready, and how it has ended.
jobs() { kubectl get jobs -o jsonpath='{range .items[*]}{.status.ready} {.status.conditions[?(@.status=="True")].type}{"\n"}{end}'; }

# count REGEXP prints how many of these lines match.
count() { jobs | grep -c "$1"; }

# running COUNT waits until the pods of as many Jobs run, and prints that.
running() {
	until_prints "$1" count '^1'
	echo "$1 running"
}

# ended COUNT TYPE waits until as many Jobs have ended: Complete or Failed.
ended() {
	until_prints "$1" count "$2"
	echo "$1 $2"
}

# finish takes all messages away, and lets all pods end.
finish() {
	messages 0
	poll
	let_all_end
	until_inactive
	until_true scaledjob/a Active=False
}
