SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export CGO_ENABLED := 0

# All builds have the same flags (see test/cluster/gobuild.go), so that they share compiled packages.
GOFLAGS ?= -trimpath -buildvcs=false -gcflags=all=-dwarf=false
export GOFLAGS

VERSION ?= 0.1.0
IMAGE ?= localhost/stateful-operator:$(VERSION)
GATE_IMAGE ?= localhost/statefulsingleton-gate:$(VERSION)

# The bundle for OLM. PREVIOUS is the released version that this one replaces; there is none yet.
CHANNELS ?= stable,candidate
DEFAULT_CHANNEL ?= stable
BUNDLE_IMAGE ?= localhost/stateful-operator-bundle:$(VERSION)
CATALOG_IMAGE ?= localhost/stateful-operator-catalog:$(VERSION)
SCORECARD_IMAGE ?= localhost/stateful-operator-scorecard:$(VERSION)
# The Dockerfile and `make release` build for all of these, `make image` for this machine.
EVERY_ARCHITECTURE := amd64 arm64 ppc64le s390x
ARCHITECTURES ?= $(EVERY_ARCHITECTURE)
export ARCHITECTURES EVERY_ARCHITECTURE PREVIOUS BUNDLE_IMAGE IMAGE SCORECARD_IMAGE CHANNELS DEFAULT_CHANNEL
# A second image with a shell, for promises about changed images.
OTHER_IMAGE ?= registry.k8s.io/e2e-test-images/busybox:1.37.0-1

# Pinned tools, each set in a module of its own. Those that are slow to build are kept in the
# cache folder of the user, under their version and that of Go.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/stateful-operator
CONTROLLER_GEN := go tool -modfile=tools/generate/go.mod controller-gen
LINT_VERSION := $(shell sed -n 's|.*github.com/golangci/golangci-lint/v2 \(v[^ ]*\).*|\1|p' tools/lint/go.mod)
LINT := $(CACHE)/golangci-lint-$(LINT_VERSION)-$(shell go env GOVERSION)/golangci-lint
CLUSTER := go run ./test/cluster/cmd/cluster
SDK = $$($(CLUSTER) build operator-sdk)/operator-sdk
OPM = $$($(CLUSTER) build opm)/opm

# Everything that controller-gen and operator-sdk write. The date in the bundle is that of the last change.
GENERATED := apis config/crd/bases config/rbac/role.yaml config/webhook/manifests.yaml \
	config/manifests/bases config/openshift/samples.yaml config/monitoring/dashboards docs/reference bundle bundle.Dockerfile catalog

.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

say = @printf '\n\033[1m==> %s\033[0m\n' "$@"

##@ Start here

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

run: ## Start a local cluster with operator and samples
	@go run ./test/run

sample-postgres: ## Run the PostgreSQL sample
	@go run ./test/run/postgres

sample-redis: ## Run the Redis sample
	@go run ./test/run/redis

test: test-unit test-api test-core ## Run what every change must pass

plugin: ## Build kubectl stateful into build/bin
	@CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$(VERSION) -X main.commit=$$(git rev-parse HEAD 2>/dev/null || echo unknown)" -o build/bin/kubectl-stateful ./cmd/kubectl-stateful
	@echo "To use it: export PATH=$(CURDIR)/build/bin:\$$PATH; kubectl stateful --help"

##@ Change the code

generate: ## Generate the deepcopy functions of apis/
	$(say)
	@$(CONTROLLER_GEN) object paths=./apis/...

manifests: ## Generate CRDs, roles, webhooks, dashboards, reference
	$(say)
	@hack/manifests.sh $(CONTROLLER_GEN)

check-generated: ## Fail if generated files are out of date
	@hack/check-generated.sh $(GENERATED)

fmt: $(LINT) ## Format the code
	@$(LINT) fmt

lint: $(LINT) ## Run the linters
	$(say)
	@$(LINT) run --timeout=20m ./...
	@$(MAKE) vulncheck UNREACHABLE=passes

# The result of lint does not depend on the network, so it passes if the database is unreachable.
# A release does not.
VULNDB ?= https://vuln.go.dev
vulncheck: ## Find known vulnerabilities [VULNDB UNREACHABLE=passes]
	@hack/vulncheck.sh '$(VULNDB)' '$(UNREACHABLE)'

$(LINT): tools/lint/go.mod
	@echo "Building golangci-lint $(LINT_VERSION). This takes some minutes."
	@cd tools/lint && go build -trimpath -ldflags='-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

##@ Test and measure

# A local cluster needs root. Go does not detect changes of its programs, so results are not cached.
as_root = @[ "$$(id -u)" = 0 ] || { echo "make $@: a local cluster with nodes needs root" >&2; exit 1; }
as_root_or_there = @[ -n "$${KUBECONFIG:-}" ] || [ "$$(id -u)" = 0 ] || { echo "make $@: a local cluster with nodes needs root; set KUBECONFIG to use another one" >&2; exit 1; }

test-unit test-api test-core test-nodes: export GOGC = 400

test-unit: ## Run the unit tests
	$(say)
	@if [ "$$(id -u)" = 0 ]; then $(CLUSTER) packages; export GATE_NEEDS_ALL=1; fi; \
	go test -vet=off -p 3 -skip '^Test(API|OLM|Scorecard|BuiltIn|Promises|Prometheus|Alerts)' ./...

test-api: ## Run the tests against a real API server
	$(say)
	@hack/test-api.sh

test-older: ## Run test-api on older versions [KUBERNETES='1.30 1.33']
	@hack/older.sh test-api $(or $(KUBERNETES),1.30 1.33)

# Two processes have a cluster each, and the others share one. In the core, one process runs all
# promises that must run alone: a third cluster costs more than it gains on two cores.
PROMISES := go tool ginkgo run --vet=off --grace-period=2m -v
ON_PROMISES = -test.run='^TestPromises$$' $(if $(KUBERNETES),-kubernetes=$(KUBERNETES))

test-core: ## Run the core promises on real nodes [KUBERNETES=1.33]
	$(as_root_or_there)
	$(say)
	@$(PROMISES) --procs=3 --timeout=40m --label-filter=core ./scorecard/promises -- $(ON_PROMISES) -in-turn

test-nodes: ## Run all promises on real nodes [KUBERNETES=1.33]
	$(as_root_or_there)
	$(say)
	@$(PROMISES) --procs=6 --timeout=3h ./scorecard/promises -- $(ON_PROMISES)

test-older-nodes: ## Run test-core on older versions [KUBERNETES='1.30 1.33']
	$(as_root)
	@hack/older.sh test-core $(or $(KUBERNETES),1.30 1.33)

ONE_PROMISE := go test -vet=off -count=1 -timeout 12h -v -run '^TestPromises$$' ./scorecard/promises -ginkgo.v -ginkgo.timeout=12h

test-stories: ## Run all stories with all faults
	@hack/test-stories.sh

fuzz: ## Run the fuzz tests [FUZZTIME=30s]
	@hack/fuzz.sh '$(or $(FUZZTIME),30s)'

test-rules: ## Test alerts and dashboards with Prometheus' code
	@go test -vet=off -count=1 -timeout 1h -run '^TestPrometheus' ./controllers ./test/monitoring

test-alerts: ## Test alerts on a local cluster
	$(as_root)
	@go test -vet=off -count=1 -timeout 2h -v -run '^TestAlerts$$' ./test/alerts

test-first-contact: ## Run the commands of the documentation
	$(as_root)
	@go test -vet=off -count=1 -timeout 1h -v -run '^TestPromisesFirstContact$$' ./test/firstcontact

test-hostile: ## Run all attacks of a hostile tenant
	@KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes) KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
		go test -vet=off -count=1 -timeout 1h -v -run '^TestAPIHostile' ./test/hostile -long

test-long: test-nodes check-traces check-release mutants test-stories test-rules test-alerts test-first-contact fuzz test-hostile test-api test-older test-older-nodes soak-singleton soak-replicated soak-freeze ## Run all of these (some hours)
	$(as_root)
	@hack/mutant-soaks.sh

mutants: ## Run the unit tests with mutants [MUTANT=name], and the large models
	@go run ./test/faults/mutant kill '$(MUTANT)' && go test -run=ModelHolds ./controllers/statefulsingleton ./controllers/replicatedstatefulset -large

rbac-report: ## Compare roles with an audit log [AUDIT_LOG=file]
	@$(if $(AUDIT_LOG),go run ./test/rbac/report --audit-log='$(AUDIT_LOG)',cat build/rbac.txt) # which test-nodes writes

test-olm: check-bundle test-scorecard ## Install, upgrade and remove by OLM
	$(as_root)
	@go test -count=1 -timeout 60m -v -run '^TestOLM' ./test/olm

test-scorecard: ## Run scorecard, also with broken bundles
	$(as_root)
	@go test -count=1 -timeout 60m -v -run '^TestScorecard' ./test/scorecard

check-commands: ## Check commands of a ReplicatedStatefulSet [FILE=manifest.yaml]
	@go run ./test/checkcommands --file='$(FILE)'

soak-singleton: ## Run many handovers of StatefulSingletons [HANDOVERS=500 SEED=0]
	$(as_root_or_there)
	@$(ONE_PROMISE) -ginkgo.focus='nodes S9 ' -handovers=$(or $(HANDOVERS),500) -seed=$(or $(SEED),0)

# Builds the operator with a mutant, if one is named.
with_mutant = if [ -n '$(MUTANT)' ]; then \
		go run ./test/faults/mutant build '$(MUTANT)' build/mutant && \
		export GOFLAGS="$$GOFLAGS -overlay=$(CURDIR)/build/mutant/overlay.json"; \
	fi

soak-replicated: ## Run ReplicatedStatefulSets with faults [RUNS=100 PROMISE=RS-43 SEED=0 FAULT=text MUTANT=name]
	$(as_root_or_there)
	@$(with_mutant); $(ONE_PROMISE) -ginkgo.focus='nodes $(or $(PROMISE),RS-(43|147|148)) ' -faults=$(or $(RUNS),100) -seed=$(or $(SEED),0) -fault='$(FAULT)'

soak-freeze: ## Freeze the leader [FREEZES=0 SEED=0 FAULT=text MUTANT=name]
	$(as_root)
	@$(with_mutant); $(ONE_PROMISE) -ginkgo.focus='operator V[23] ' -freezes=$(or $(FREEZES),0) -seed=$(or $(SEED),0) -fault='$(FAULT)'

check-traces: ## Check traces of node tests against the models [TRACES=folders]
	@go run ./test/traces -mutate=all -frozen='/(stopped|paused)\.singleton$$' $(or $(TRACES),build/traces/*)

bench: ## Run the benchmarks
	@go run ./test/bench

##@ Local cluster

cluster-up: ## Start a local cluster [NODES=3 KUBERNETES=1.33]
	@$(CLUSTER) up --nodes=$(or $(NODES),3) --kubernetes=$(KUBERNETES)

cluster-down: ## Stop it and delete its files
	@$(CLUSTER) down

olm-up: ## Install OLM, a catalog, a subscription [NODES=3]
	@go run ./test/olm/cmd/olm up --nodes=$(or $(NODES),3)

olm-down: ## Remove OLM and what it installed
	@go run ./test/olm/cmd/olm down

kubeconfig: ## Print the path of its kubeconfig
	@$(CLUSTER) kubeconfig

##@ Image and deployment

image: ## Write the image to build/ [IMAGE=name:tag]
	@go run ./test/run/image --package=. --with=./gate --with=./agent --ref=$(IMAGE) --out=build/stateful-operator.tar

gate-image: ## Write the gate's and agent's image to build/ [GATE_IMAGE=name:tag]
	@go run ./test/run/image --package=./gate --with=./agent --ref=$(GATE_IMAGE) --out=build/gate.tar

# SIGNING_KEY is a file with a private key in PEM without a password. $SIGNING_KEY_PEM is the key itself.
REGISTRY ?= ghcr.io/stateful-operator
DIST ?= dist
RELEASE := go run ./test/release/cmd/release

release: ## Write dist/ [REGISTRY SIGNING_KEY UNSIGNED=yes DIST]
	@$(RELEASE) write --version='$(VERSION)' --registry='$(REGISTRY)' --out='$(DIST)' --key='$(SIGNING_KEY)' --unsigned='$(UNSIGNED)' \
		--architectures="$$(echo $(ARCHITECTURES) | tr ' ' ,)" --opm=$(OPM)

# A version without a suffix needs release notes, which do not exist before it is released.
TRIAL = $(if $(findstring -,$(VERSION)),$(VERSION),$(VERSION)-rc.1)
check-release: ## Fail if two releases differ in a byte
	@for n in one two; do $(MAKE) --no-print-directory release VERSION='$(TRIAL)' DIST=build/release-$$n; done
	@diff -r build/release-one build/release-two && echo "Both releases are the same."

publish: ## Push dist/ to REGISTRY and GitHub [REGISTRY DIST]
	@cd '$(DIST)' && sha256sum --check --quiet SHA256SUMS
	@$(RELEASE) push --version='$(VERSION)' --registry='$(REGISTRY)' --out='$(DIST)' --key='$(SIGNING_KEY)' --unsigned='$(UNSIGNED)'
	@hack/github-release.sh '$(VERSION)' '$(DIST)'

# Uses the cluster of KUBECONFIG, or the local one.
in_cluster = export KUBECONFIG=$${KUBECONFIG:-$$($(CLUSTER) kubeconfig)}; \
	kubectl=$$(command -v kubectl || echo $$($(CLUSTER) build kubernetes)/kubectl)

install: ## Install the CRDs
	@$(in_cluster); $$kubectl apply -k config/crd

# make run sets LOADED if it has loaded the image, and REPLICAS=0 if no node can run the operator.
deploy: ## Install the operator [IMAGE=name:tag MONITORING=yes]
	@[ -n '$(LOADED)' ] || hack/load.sh '$(IMAGE)'
	@$(in_cluster); MONITORING='$(MONITORING)' REPLICAS='$(REPLICAS)' hack/deploy.sh "$$kubectl" '$(IMAGE)'

undeploy: ## Remove the operator and all its objects
	@$(in_cluster); hack/undeploy.sh "$$kubectl"

##@ OLM: bundle and catalog

bundle: ## Write bundle/ [VERSION PREVIOUS IMAGE ARCHITECTURES CHANNELS]
	$(say)
	@hack/update-bundle.sh $(SDK) $(VERSION) $(PREVIOUS)

bundle-image: ## Write its image to build/ [BUNDLE_IMAGE FOLDER=bundle]
	@go run ./test/bundle/cmd/bundle image --folder=$(or $(FOLDER),bundle) --ref=$(BUNDLE_IMAGE) --out=build/bundle.tar

catalog: bundle ## Write catalog/ [BUNDLE_IMAGE]
	$(say)
	@mkdir -p catalog/stateful-operator
	@go run ./test/bundle/cmd/bundle catalog --template=config/olm/catalog.yaml --opm=$(OPM) --out=catalog/stateful-operator/catalog.yaml present=$(BUNDLE_IMAGE)=bundle

catalog-image: ## Write its image to build/ [CATALOG_IMAGE]
	@go run ./test/bundle/cmd/bundle catalog-image --folder=catalog --ref=$(CATALOG_IMAGE) --out=build/catalog.tar \
		--opm=$(OPM) --probe=$$(dirname $(OPM))/grpc-health-probe

# `make release` uses this for the bundle of a released image, in the folder OUT.
release-bundle:
	@hack/bundle.sh $(SDK) $(OUT) $(VERSION) $(PREVIOUS)

check-bundle: ## Run the validators of OLM
	$(say)
	@hack/check-bundle.sh $(SDK) $(OPM)

scorecard-image: ## Write the images of scorecard [SCORECARD_IMAGE OTHER_IMAGE]
	@go run ./test/scorecard/cmd/scorecard image --ref=$(SCORECARD_IMAGE) --other=$(OTHER_IMAGE) --out=build/scorecard.tar
	@go run ./test/scorecard/cmd/scorecard built-in --out=build/scorecard-test.tar

scorecard: ## Run scorecard on the installed operator [SELECTOR=suite=basic]
	@here=$${KUBECONFIG:-}; $(in_cluster); LOCAL=$$([ -n "$$here" ] || echo yes) hack/scorecard.sh "$$kubectl" '$(SELECTOR)'

clean: ## Remove build/ and dist/
	@rm -rf build dist
