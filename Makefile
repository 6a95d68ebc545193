# `make help` is the index of this file.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export CGO_ENABLED := 0

# The flags of every build (see test/cluster/gobuild.go): all of them share what is compiled.
GOFLAGS ?= -trimpath -buildvcs=false -gcflags=all=-dwarf=false
export GOFLAGS

VERSION ?= 0.1.0
IMAGE ?= localhost/stateful-operator:$(VERSION)
GATE_IMAGE ?= localhost/statefulsingleton-gate:$(VERSION)

# What OLM is told. PREVIOUS is the version that was released before this one, which this
# one replaces; none was.
PREVIOUS ?=
CHANNELS ?= stable,candidate
DEFAULT_CHANNEL ?= stable
BUNDLE_IMAGE ?= localhost/stateful-operator-bundle:$(VERSION)
# What the operator's image is for: the Dockerfile and `make release` make it for all of
# these, and `make image` for that of this machine.
EVERY_ARCHITECTURE := amd64 arm64 ppc64le s390x
ARCHITECTURES ?= $(EVERY_ARCHITECTURE)
export ARCHITECTURES PREVIOUS BUNDLE_IMAGE
CATALOG_IMAGE ?= localhost/stateful-operator-catalog:$(VERSION)
SCORECARD_IMAGE ?= localhost/stateful-operator-scorecard:$(VERSION)
# Of a second image with a shell, for promises of changed images.
OTHER_IMAGE ?= registry.k8s.io/e2e-test-images/busybox:1.37.0-1
NODES ?= 3

# Pinned tools, each set a module of its own. What is slow to build is kept in
# the user's cache folder under its version and that of the Go it was built by.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/stateful-operator
GENERATE_TOOL := go tool -modfile=tools/generate/go.mod
CONTROLLER_GEN := $(GENERATE_TOOL) controller-gen
RENDER := go run ./test/manifest/cmd/render
LINT_VERSION := $(shell sed -n 's|.*github.com/golangci/golangci-lint/v2 \(v[^ ]*\).*|\1|p' tools/lint/go.mod)
LINT := $(CACHE)/golangci-lint-$(LINT_VERSION)-$(shell go env GOVERSION)/golangci-lint
CLUSTER := go run ./test/cluster/cmd/cluster

# Everything that controller-gen and operator-sdk write. The date in the bundle is
# that of the last change.
GENERATED := apis config/crd/bases config/rbac/role.yaml config/webhook/manifests.yaml \
	config/manifests/bases config/openshift/samples.yaml config/monitoring/dashboards bundle bundle.Dockerfile catalog

say = @printf '\n\033[1m==> %s\033[0m\n' "$(1)"

##@ Start here

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

.PHONY: run
run: ## Boot a local cluster (or use KUBECONFIG), deploy the operator and samples, and show what to try [IMAGE=registry/name, for KUBECONFIG].
	@go run ./test/run

.PHONY: sample-postgres
sample-postgres: ## The same with PostgreSQL as a StatefulSingleton: rows, rollouts, and what its servers say.
	$(call say,Running the PostgreSQL sample)
	@go run ./test/run/postgres

.PHONY: sample-redis
sample-redis: ## The same with Redis as a ReplicatedStatefulSet: failovers, and what they cost a client.
	$(call say,Running the Redis sample)
	@go run ./test/run/redis

.PHONY: test
test: test-unit test-api test-core ## What each change must pass, one kind after another: each kind uses the whole machine.

.PHONY: plugin
plugin: ## Build kubectl stateful, a plugin of kubectl for the four kinds, into build/bin.
	$(call say,Building kubectl stateful)
	@go build -ldflags="-s -w -X main.version=$(VERSION) -X main.commit=$$(git rev-parse HEAD 2>/dev/null || echo unknown)" -o build/bin/kubectl-stateful ./cmd/kubectl-stateful
	@echo "To use it: export PATH=$(CURDIR)/build/bin:\$$PATH; kubectl stateful --help"

##@ Change the code

.PHONY: generate
generate: ## Write the deepcopy functions of the types in apis/.
	$(call say,Generating deepcopy functions)
	@$(CONTROLLER_GEN) object paths=./apis/...

.PHONY: manifests
manifests: ## Write CRDs, roles and webhook configuration from the markers in the code, the console's samples, and dashboards.
	$(call say,Generating CRDs and roles and the webhook configuration)
	@mkdir -p build
	@$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true rbac:roleName=unnamed-role webhook \
		paths=./apis/... paths=./controllers/... \
		output:crd:dir=config/crd/bases output:rbac:dir=config/rbac output:webhook:dir=config/webhook
	@go run ./config/crd/trim config/crd/bases
	@go run ./config/openshift/generate config/samples > build/console.yaml && mv build/console.yaml config/openshift/samples.yaml
	@go run ./config/monitoring/generate config/monitoring/dashboards

.PHONY: check-generated
check-generated: ## Fail if generated files differ from what the code says.
	@rm -rf build/_generated && mkdir -p build/_generated
	@tar cf - $(GENERATED) | tar xf - -C build/_generated
	@$(MAKE) --no-print-directory generate manifests bundle catalog
	@for path in $(GENERATED); do \
		diff -r build/_generated/$$path $$path || { echo "Generated files were not up to date; they are now: commit them." >&2; exit 1; }; \
	done

.PHONY: fmt
fmt: $(LINT) ## Format the code.
	@$(LINT) fmt

.PHONY: lint
lint: $(LINT) ## Look for faults without running anything.
	$(call say,Linting)
	@$(LINT) run --timeout=20m ./...
	@$(MAKE) vulncheck UNREACHABLE=passes

# A change must not pass or fail by what a network is like, so lint passes where the database is
# unreachable. A release does not.
VULNDB ?= https://vuln.go.dev
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in all programs of a release [VULNDB=https://vuln.go.dev UNREACHABLE=passes].
	$(call say,Looking for known vulnerabilities)
	@found=$$(go tool -modfile=tools/vulncheck/go.mod govulncheck -db '$(VULNDB)' . ./gate ./cmd/kubectl-stateful 2>&1) && echo "$$found" || case '$(UNREACHABLE)'$$found in \
		passes*'fetching vulnerabilities'*) echo "nothing is known: $$found" ;; \
		*) echo "$$found" >&2; exit 1 ;; \
	esac

$(LINT): tools/lint/go.mod
	$(call say,Building golangci-lint $(LINT_VERSION) once: this takes some minutes)
	@cd tools/lint && go build -trimpath -ldflags='-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

##@ Test and measure

# A local cluster needs root, and tests without one are left out: that must not look
# as if they had passed. Nor must an old result, as Go does not see what a cluster is
# built from.
as_root = @[ "$$(id -u)" = 0 ] || { echo "make $@: a local cluster with nodes needs root" >&2; exit 1; }
as_root_or_there = @[ -n "$${KUBECONFIG:-}" ] || [ "$$(id -u)" = 0 ] || { echo "make $@: a local cluster with nodes needs root; set KUBECONFIG to use another one" >&2; exit 1; }

test-unit test-api test-core test-nodes: export GOGC = 400

.PHONY: test-unit
test-unit: ## Tests that need nothing: tables, stories, layout.
	$(call say,Unit tests)
	@if [ "$$(id -u)" = 0 ]; then $(CLUSTER) packages; export GATE_NEEDS_ALL=1; fi; \
	go test -vet=off -skip '^Test(API|OLM|Scorecard|BuiltIn|Promises|Prometheus|Alerts)' ./...

.PHONY: test-api
test-api: ## Tests against a real API server (their names start with TestAPI).
	$(call say,API-server tests)
	@assets=$$($(CLUSTER) build kubernetes); \
	export KUBEBUILDER_ASSETS=$$assets KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m; \
	suites=$$(grep -rl --include='*_test.go' 'func TestAPI(' controllers | xargs -n1 dirname | sort -u); \
	go test -vet=off -count=1 -run '^TestAPI[A-Z]' $$(grep -rlE --include='*_test.go' 'func TestAPI[A-Z]' cmd controllers test | xargs -n1 dirname | sort -u | sed 's,^,./,'); \
	go tool ginkgo run --vet=off --procs=3 --timeout=30m $$suites -- -test.run='^TestAPI$$'

# No spec is left out there; docs/kubernetes-versions.md says what older ones lack.
.PHONY: test-older
test-older: ## test-api on each older version of Kubernetes that is tried [KUBERNETES='1.30 1.33'].
	@for version in $(or $(KUBERNETES),1.30 1.33); do \
		assets=$$($(CLUSTER) build kubernetes-$$version); \
		printf '\nKubernetes %s\n' $$version; \
		TEST_ASSET_KUBE_APISERVER=$$assets/kube-apiserver APISERVER_VERSION=$$version $(MAKE) --no-print-directory test-api; \
	done

# Two processes have a cluster each, and the others share one. In the core one process tries all
# that have to be alone: a third cluster takes more of two cores than it gives.
PROMISES := go tool ginkgo run --vet=off --grace-period=2m -v
ON_PROMISES = -test.run='^TestPromises$$' $(if $(KUBERNETES),-kubernetes=$(KUBERNETES))

.PHONY: test-core
test-core: ## The core of the promises on real nodes: KUBECONFIG's, or those of local clusters [KUBERNETES=1.33].
	$(as_root_or_there)
	$(call say,The core of the promises on real nodes)
	@$(PROMISES) --procs=3 --timeout=40m --label-filter=core ./scorecard/promises -- $(ON_PROMISES) -in-turn

.PHONY: test-nodes
test-nodes: ## All promises of each kind on real nodes (about an hour of CPU time) [KUBERNETES=1.33].
	$(as_root_or_there)
	$(call say,Promises on real nodes)
	@$(PROMISES) --procs=6 --timeout=3h ./scorecard/promises -- $(ON_PROMISES)

.PHONY: test-older-nodes
test-older-nodes: ## The core of the promises on real nodes of each older Kubernetes [KUBERNETES='1.30 1.33'].
	$(as_root)
	@unset KUBECONFIG; for version in $(or $(KUBERNETES),1.30 1.33); do \
		printf '\nKubernetes %s\n' $$version; \
		$(MAKE) --no-print-directory test-core KUBERNETES=$$version; \
	done

# The flags of one promise that is tried for long, with what it says as it goes on.
ONE_PROMISE := go test -vet=off -count=1 -timeout 12h -v -run '^TestPromises$$' ./scorecard/promises -ginkgo.v -ginkgo.timeout=12h

# The unit tests of make test take a sample of these. No flag is known to all four.
.PHONY: test-stories
test-stories: ## Every story of each kind: each write goes wrong in each way, also against an API server, and a hundred random orders (half an hour).
	$(call say,Each write of each story goes wrong)
	@go test -count=1 -timeout 2h -skip '^TestAPI' ./controllers/statefulcluster ./controllers/statefulsingleton -seeds=100
	@go test -count=1 -timeout 2h -skip '^TestAPI' ./controllers/extendedstatefulset -every=1 -loads=100
	@go test -count=1 -timeout 2h -skip '^TestAPI' ./controllers/replicatedstatefulset -orders=100
	@KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes) go tool ginkgo run --vet=off --procs=3 --timeout=2h \
		./controllers/statefulcluster ./controllers/statefulsingleton -- -test.run='^TestAPI$$' -seeds=100

# Whoever finds an input that fails keeps it: Go writes it into testdata/fuzz, and from then
# on make test-unit tries it. Go would spend a minute on making each new input shorter, which
# is more than there is for all.
.PHONY: fuzz
fuzz: ## What strangers send: each fuzz test for a while, one after another [FUZZTIME=30s].
	$(call say,What strangers send)
	@grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' apis config controllers gate scorecard test | sort | \
	while IFS=: read -r file _ found; do \
		printf '\n%s of %s\n' "$${found#func }" "$$(dirname "$$file")"; \
		go test -vet=off -run '^$$' -fuzz "^$${found#func }$$" -fuzztime '$(or $(FUZZTIME),30s)' -fuzzminimizetime 20x "./$$(dirname "$$file")" < /dev/null || exit 1; \
	done

.PHONY: test-rules
test-rules: ## Alerts and queries of dashboards, tried with Prometheus' own code, which is built once (some minutes).
	$(call say,Alerts and dashboards)
	@go test -vet=off -count=1 -timeout 1h -run '^TestPrometheus' ./controllers ./test/monitoring

.PHONY: test-alerts
test-alerts: ## Alerts that real faults fire on a local cluster, in a Prometheus that scrapes it, and each panel of the dashboards.
	$(as_root)
	$(call say,Alerts of real faults)
	@go test -vet=off -count=1 -timeout 2h -v -run '^TestAlerts$$' ./test/alerts

.PHONY: test-first-contact
test-first-contact: ## The commands of README.md and docs/install.md, as written, on a local cluster.
	$(as_root)
	$(call say,Commands of the pages)
	@go test -vet=off -count=1 -timeout 1h -v -run '^TestPromisesFirstContact$$' ./test/firstcontact

.PHONY: test-hostile
test-hostile: ## All attacks of one tenant on the operator, and how long the others wait.
	$(call say,One tenant against all)
	@KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes) KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
		go test -vet=off -count=1 -timeout 1h -v -run '^TestAPIHostile' ./test/hostile -long

# Each mutant must be found by the runs with its seed, or the faults have become blunt.
.PHONY: test-long
test-long: test-nodes check-release mutants test-stories test-rules test-alerts test-first-contact fuzz test-hostile test-api test-older test-older-nodes soak-singleton soak-replicated soak-freeze ## What is too long for each change: all promises, all stories, alerts, fuzzing, older versions of Kubernetes, the soaks, and mutants that the soak must find (some hours).
	$(as_root)
	$(call say,Mutants on real nodes)
	@for mutant in $$(go run ./test/faults/mutant soak soak-replicated); do \
		log=build/mutant-$$mutant.log; printf 'with %s: ' "$$mutant"; \
		$(MAKE) soak-replicated RUNS=3 SEED=7 MUTANT="$$mutant" > $$log 2>&1 || true; \
		grep -q '\[FAIL\].*RS-43' $$log || { echo "not found, see $$log" >&2; exit 1; }; \
		echo found; \
	done
	@for mutant in $$(go run ./test/faults/mutant soak soak-freeze); do \
		log=build/mutant-$$mutant.log; printf 'with %s: ' "$$mutant"; \
		$(MAKE) soak-freeze FREEZES=0 SEED=7 FAULT='StatefulCluster scale' MUTANT="$$mutant" > $$log 2>&1 || true; \
		grep -q '\[FAIL\].*V[23] ' $$log || { echo "not found, see $$log" >&2; exit 1; }; \
		echo found; \
	done

.PHONY: mutants
mutants: ## Run the unit tests with each mutant; all must be noticed [MUTANT=text in its name].
	$(call say,Mutants)
	@go run ./test/faults/mutant kill '$(MUTANT)'

.PHONY: rbac-report
rbac-report: ## Compare the roles with what an API server's audit log shows [AUDIT_LOG=file, or the last run of test-nodes].
	$(call say,Roles and what was asked for)
	@if [ -n '$(AUDIT_LOG)' ]; then go run ./test/rbac/report --audit-log='$(AUDIT_LOG)'; \
	elif [ -f build/rbac.txt ]; then cat build/rbac.txt; \
	else echo "make test-nodes writes build/rbac.txt, or give AUDIT_LOG." >&2; exit 1; fi

.PHONY: test-olm
test-olm: check-bundle test-scorecard ## Validate, scorecard; subscribe, upgrade and remove by a real OLM, in all install modes, and as OpenShift would.
	$(as_root)
	$(call say,The operator by OLM)
	@go test -count=1 -timeout 60m -v -run '^TestOLM' ./test/olm

.PHONY: test-scorecard
test-scorecard: ## Scorecard on a local cluster: all pass, and a broken bundle and a broken operator fail.
	$(as_root)
	$(call say,Scorecard)
	@go test -count=1 -timeout 60m -v -run '^TestScorecard' ./test/scorecard

.PHONY: check-commands
check-commands: ## Try the commands of a ReplicatedStatefulSet in a cluster, rule by rule [FILE=manifest.yaml].
	$(call say,Trying the commands of $(FILE))
	@go run ./test/checkcommands --file='$(FILE)'

.PHONY: soak-singleton
soak-singleton: ## Many mixed handovers of StatefulSingletons on a local cluster; none may overlap [HANDOVERS=500 SEED=0].
	$(as_root_or_there)
	$(call say,Handovers of StatefulSingletons)
	@$(ONE_PROMISE) -ginkgo.focus='nodes S9 ' -handovers=$(or $(HANDOVERS),500) -seed=$(or $(SEED),0)

.PHONY: soak-replicated
soak-replicated: ## Many runs of ReplicatedStatefulSets with faults by chance; no entry may be lost [RUNS=100 SEED=0 FAULT=text in its name MUTANT=name, which must fail].
	$(as_root_or_there)
	$(call say,Faults of ReplicatedStatefulSets)
	@if [ -n '$(MUTANT)' ]; then \
		go run ./test/faults/mutant build '$(MUTANT)' build/mutant && \
		export GOFLAGS="$$GOFLAGS -overlay=$(CURDIR)/build/mutant/overlay.json"; \
	fi; \
	$(ONE_PROMISE) -ginkgo.focus='nodes RS-43 ' -faults=$(or $(RUNS),100) -seed=$(or $(SEED),0) -fault='$(FAULT)'

.PHONY: soak-freeze
soak-freeze: ## A leader frozen at every write of every scenario, in each mode; nothing may be made twice [FREEZES=0 SEED=0 FAULT=text in a scenario's name MUTANT=name, which must fail].
	$(as_root)
	$(call say,Frozen leaders)
	@if [ -n '$(MUTANT)' ]; then \
		go run ./test/faults/mutant build '$(MUTANT)' build/mutant && \
		export GOFLAGS="$$GOFLAGS -overlay=$(CURDIR)/build/mutant/overlay.json"; \
	fi; \
	$(ONE_PROMISE) -ginkgo.focus='operator V[23] ' -freezes=$(or $(FREEZES),0) -seed=$(or $(SEED),0) -fault='$(FAULT)'

.PHONY: bench
bench: ## Measure against the built-in StatefulSet; prints each figure with its goal.
	$(call say,Benchmarks)
	@go run ./test/bench

##@ Local cluster

.PHONY: cluster-up
cluster-up: ## Boot a real Kubernetes on this machine [NODES=3 KUBERNETES=1.33].
	@$(CLUSTER) up --nodes=$(NODES) --kubernetes=$(KUBERNETES)

.PHONY: cluster-down
cluster-down: ## End it, and leave nothing behind.
	@$(CLUSTER) down

.PHONY: olm-up
olm-up: ## Put OLM on it, a catalog with this operator, and a subscription; boots it first [NODES=3].
	@go run ./test/olm/cmd/olm up --nodes=$(NODES)

.PHONY: olm-down
olm-down: ## Remove OLM and what it installed; the cluster stays.
	@go run ./test/olm/cmd/olm down

.PHONY: kubeconfig
kubeconfig: ## Print where its kubeconfig is, for export KUBECONFIG=
	@$(CLUSTER) kubeconfig

##@ Image and deployment

.PHONY: image
image: ## Write the operator's image as a tar to build/, without a container engine [IMAGE=name:tag].
	$(call say,Building $(IMAGE))
	@go run ./test/run/image --package=. --with=./gate --ref=$(IMAGE) --out=build/stateful-operator.tar

.PHONY: gate-image
gate-image: ## Write the gate's own image to build/, for --gate-image [GATE_IMAGE=name:tag].
	$(call say,Building $(GATE_IMAGE))
	@go run ./test/run/image --package=./gate --ref=$(GATE_IMAGE) --out=build/gate.tar

# Where released images are found, and what signs: the file of a private key in PEM without
# a password, or the key itself in $SIGNING_KEY_PEM.
REGISTRY ?= ghcr.io/stateful-operator
SIGNING_KEY ?=
DIST ?= dist
comma := ,
spaces := $(subst ,, )
RELEASE := go run ./test/release/cmd/release

.PHONY: release
release: ## Write a release of this commit to dist/: manifests, images, bundle, catalog, sums [VERSION REGISTRY PREVIOUS ARCHITECTURES SIGNING_KEY UNSIGNED=yes DIST].
	$(call say,Releasing version $(VERSION))
	@$(RELEASE) write --version='$(VERSION)' --registry='$(REGISTRY)' --out='$(DIST)' --key='$(SIGNING_KEY)' --unsigned='$(UNSIGNED)' \
		--architectures='$(subst $(spaces),$(comma),$(strip $(ARCHITECTURES)))' --opm=$(OPM)

# A version without a suffix has notes of its own, which the next one has not before its time.
TRIAL = $(if $(findstring -,$(VERSION)),$(VERSION),$(VERSION)-rc.1)
.PHONY: check-release
check-release: ## Write a release twice, and fail if one byte differs [as release].
	@$(MAKE) --no-print-directory release VERSION='$(TRIAL)' DIST=build/release-one
	@$(MAKE) --no-print-directory release VERSION='$(TRIAL)' DIST=build/release-two
	@diff -r build/release-one build/release-two && echo "Both are the same, byte by byte."

.PHONY: publish
publish: ## Push the images of dist/ to REGISTRY, and make a release of it on GitHub, by gh [VERSION REGISTRY DIST].
	$(call say,Publishing version $(VERSION))
	@cd '$(DIST)' && sha256sum --check --quiet SHA256SUMS
	@$(RELEASE) push --version='$(VERSION)' --registry='$(REGISTRY)' --out='$(DIST)' --key='$(SIGNING_KEY)' --unsigned='$(UNSIGNED)'
	@gh release create 'v$(VERSION)' --verify-tag --title 'v$(VERSION)' --notes-file '$(DIST)/release-notes.md' \
		$(if $(findstring -,$(VERSION)),--prerelease) '$(DIST)'/*

# In the cluster of KUBECONFIG, or in the local one.
in_cluster = export KUBECONFIG=$${KUBECONFIG:-$$($(CLUSTER) kubeconfig)}; \
	kubectl=$$(command -v kubectl || echo $$($(CLUSTER) build kubernetes)/kubectl)

.PHONY: install
install: ## Install the CRDs only (KUBECONFIG's cluster, or the local one).
	@$(in_cluster); $$kubectl apply -k config/crd

# make run sets LOADED, as it has brought the image itself, and REPLICAS=0 where no node can
# run the operator.
.PHONY: deploy
deploy: ## Install the operator: in KUBECONFIG's cluster, or in the local one, which gets the image too [IMAGE=name:tag or name@digest, MONITORING=yes where the Prometheus operator runs].
	@local=$$($(CLUSTER) kubeconfig 2>/dev/null || true); \
	if [ -z '$(LOADED)' ] && [ "$${KUBECONFIG:-$$local}" = "$$local" ] && [[ '$(IMAGE)' == localhost/* ]]; then \
		$(MAKE) image IMAGE='$(IMAGE)'; $(CLUSTER) load build/stateful-operator.tar; \
	fi
	@mkdir -p build/deploy
	@image='$(IMAGE)'; case $$image in \
		*@*) parts="newName: $${image%@*}, digest: $${image#*@}" ;; \
		*) parts="newName: $${image%:*}, newTag: \"$${image##*:}\"" ;; \
	esac; printf '%s\n' 'resources: [../../config/default]' \
		"images: [{name: localhost/stateful-operator, $$parts}]" \
		$(if $(MONITORING),'components: [../../config/monitoring]') \
		$(if $(REPLICAS),'replicas:' $(foreach d,controller-manager webhook installer,'- {name: stateful-operator-$(d)$(comma) count: $(REPLICAS)}')) > build/deploy/kustomization.yaml
	@$(in_cluster); $$kubectl apply -k build/deploy

##@ OLM: bundle and catalog

SDK = $$($(CLUSTER) build operator-sdk)/operator-sdk
OPM = $$($(CLUSTER) build opm)/opm

# The bundle of one version in a folder of its own, because operator-sdk writes into
# the working directory: $(call write_bundle,folder,version,version before).
# OLM makes the webhooks' Service itself. Mirrors find images by their digest only.
define write_bundle
	@rm -rf $(1) && mkdir -p $(1) && cp PROJECT $(1)
	@$(RENDER) config/manifests | sed -e 's|localhost/stateful-operator:[^ ]*|$(IMAGE)|' -e 's|localhost/stateful-operator-scorecard:[^ ]*|$(SCORECARD_IMAGE)|' \
		-e 's|^    olm.skipRange: .*|    olm.skipRange: <$(2)|' \
		$(if $(3),-e 's|^  version: .*|&\n  replaces: stateful-operator.v$(3)|') \
		$(if $(findstring @,$(IMAGE)),-e 's|^\(    features.operators.openshift.io/disconnected: \).*|\1"true"|') \
		$(foreach a,$(filter-out $(ARCHITECTURES),$(EVERY_ARCHITECTURE)),-e '/^    operatorframework.io.arch.$(a): /d' -e '/^ *- $(a)$$/d') > $(1)/all.yaml
	@sdk=$(SDK); cd $(1); cat all.yaml | $$sdk generate bundle --quiet --overwrite --version=$(2) \
		--channels=$(CHANNELS) --default-channel=$(DEFAULT_CHANNEL)
	@rm $(1)/bundle/manifests/stateful-operator-webhook-service_v1_service.yaml
	@printf '%s\n' '' '  # The versions of OpenShift that have Kubernetes 1.30 or later.' \
		'  com.redhat.openshift.versions: v4.17' >> $(1)/bundle/metadata/annotations.yaml
	@printf '%s\n' '# Others may depend on this one by what it is for.' 'properties:' '- type: olm.label' \
		'  value: {label: stateful-workloads}' > $(1)/bundle/metadata/properties.yaml
	@printf '%s\n' '' '# The versions of OpenShift that have Kubernetes 1.30 or later.' \
		'LABEL com.redhat.openshift.versions=v4.17' >> $(1)/bundle.Dockerfile
endef

.PHONY: bundle
bundle: ## Write bundle/, what OLM installs [VERSION PREVIOUS IMAGE ARCHITECTURES CHANNELS DEFAULT_CHANNEL].
	$(call say,Writing the bundle of $(VERSION))
	@$(SDK) generate kustomize manifests --quiet --interactive=false --apis-dir=apis
	$(call write_bundle,build/bundle,$(VERSION),$(PREVIOUS))
	@if ! diff -r -I '^    createdAt: ' build/bundle/bundle bundle > build/bundle/diff 2>&1; then \
		rm -rf bundle && cp -r build/bundle/bundle bundle; \
	fi
	@cp build/bundle/bundle.Dockerfile bundle.Dockerfile

.PHONY: bundle-image
bundle-image: ## Write the bundle's image to build/, without a container engine [BUNDLE_IMAGE FOLDER=bundle].
	@go run ./test/bundle/cmd/bundle image --folder=$(or $(FOLDER),bundle) --ref=$(BUNDLE_IMAGE) --out=build/bundle.tar

.PHONY: catalog
catalog: bundle ## Write catalog/ from config/olm/catalog.yaml: this version, and those that were released [BUNDLE_IMAGE, and as bundle].
	$(call say,Writing the catalog)
	@mkdir -p catalog/stateful-operator
	@go run ./test/bundle/cmd/bundle catalog --template=config/olm/catalog.yaml --opm=$(OPM) --out=catalog/stateful-operator/catalog.yaml \
		present=$(BUNDLE_IMAGE)=bundle

.PHONY: catalog-image
catalog-image: ## Write the catalog's image to build/ [CATALOG_IMAGE].
	@go run ./test/bundle/cmd/bundle catalog-image --folder=catalog --ref=$(CATALOG_IMAGE) --out=build/catalog.tar \
		--opm=$(OPM) --probe=$$(dirname $(OPM))/grpc-health-probe

# What `make release` asks for: the bundle of a released image, in a folder of its own.
.PHONY: release-bundle
release-bundle:
	$(call write_bundle,$(OUT),$(VERSION),$(PREVIOUS))

.PHONY: check-bundle
check-bundle: ## Ask all validators of OLM about bundle/ and catalog/: no error, no warning.
	$(call say,Validating bundle and catalog)
	@mkdir -p build; sdk=$(SDK); for suite in suite=operatorframework name=multiarch; do \
		PATH=$(CURDIR)/test/bundle/testdata:$$PATH $$sdk bundle validate bundle --select-optional $$suite --optional-values=container-tools=none 2>&1 | tee build/validate.log; \
		! grep -iE 'level=(warn|err|fatal)' build/validate.log || exit 1; \
	done
	@$(OPM) validate catalog
	@go test -run '^TestBuiltIn' ./test/scorecard
	@go test ./test/bundle/...

.PHONY: scorecard-image
scorecard-image: ## Write the images of scorecard's tests to build/: ours and the built-in ones [SCORECARD_IMAGE OTHER_IMAGE].
	$(call say,Building the images of scorecard)
	@go run ./test/scorecard/cmd/scorecard image --ref=$(SCORECARD_IMAGE) --other=$(OTHER_IMAGE) --out=build/scorecard.tar
	@go run ./test/scorecard/cmd/scorecard built-in --out=build/scorecard-test.tar

.PHONY: scorecard
scorecard: ## Run scorecard on the operator that is there: KUBECONFIG's cluster, which can pull the images, or the local one [SELECTOR=suite=basic].
	@if [ -z "$${KUBECONFIG:-}" ]; then \
		$(MAKE) --no-print-directory scorecard-image OTHER_IMAGE=localhost/busybox:1; \
		$(CLUSTER) load build/scorecard.tar build/scorecard-test.tar; \
		untar=quay.io/operator-framework/scorecard-test:v1.42.3; \
	fi; \
	$(in_cluster); $$kubectl apply -k config/scorecard/rbac; \
	go run ./test/scorecard/cmd/scorecard run --bundle=bundle --out=build --selector='$(SELECTOR)' --untar=$${untar:-}

# The operator must be there to take off the finalizers of StatefulSingletons, of
# ReplicatedStatefulSets, which it stops in order first, and of the pods of both,
# and gone before its guard is deleted, or it would make it again.
# Without the CRD that it takes its parameters from, the guard denies every pod.
SINGLETONS := statefulsingletons.apps.openshift.statefulsingleton.com
REPLICATED := replicatedstatefulsets.clusterlabs.org
EXTENDED := extendedstatefulsets.fissile.cloudfoundry.org
GUARD := statefulsingleton-guard-stateful-operator-system

.PHONY: undeploy
undeploy: ## Remove the operator and its CRDs, and with them every object of its kinds.
	@$(in_cluster); \
	if [ -n "$$($$kubectl get crd $(SINGLETONS) --ignore-not-found -o name)" ]; then \
		$$kubectl annotate $(SINGLETONS) --all-namespaces --all --overwrite apps.statefulsingleton.com/release-now=true || true; \
		$$kubectl delete $(SINGLETONS) --all-namespaces --all --timeout=2m || { \
			echo "StatefulSingletons are still there, and nothing else was removed: does the operator run? See docs/guide/uninstall.md for what to do without it." >&2; exit 1; }; \
	fi; \
	if [ -n "$$($$kubectl get crd $(REPLICATED) --ignore-not-found -o name)" ]; then \
		$$kubectl delete $(REPLICATED) --all-namespaces --all --timeout=20m || { \
			echo "ReplicatedStatefulSets are still there, and no more was removed: does the operator run?" >&2; exit 1; }; \
	fi; \
	if [ -n "$$($$kubectl get crd $(EXTENDED) --ignore-not-found -o name)" ]; then \
		$$kubectl delete $(EXTENDED) --all-namespaces --all --timeout=2m || { \
			echo "ExtendedStatefulSets are still there, and no more was removed: does the operator run?" >&2; exit 1; }; \
	fi; \
	$$kubectl delete deployment stateful-operator-installer stateful-operator-controller-manager --namespace=stateful-operator-system --ignore-not-found --cascade=foreground; \
	$$kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies $(GUARD) --ignore-not-found; \
	$$kubectl delete --ignore-not-found -k config/default

.PHONY: clean
clean: ## Remove what was built here; the cache folder stays.
	@rm -rf build dist
