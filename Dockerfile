# The same images as `make image` and `make gate-image` write without an engine;
# the second one is --target=gate.
ARG GO_VERSION=1.26.8
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
ARG TARGETARCH
ARG VERSION
ARG COMMIT
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY apis/ apis/
COPY controllers/ controllers/
COPY gate/ gate/
COPY agent/ agent/
RUN CGO_ENABLED=0 GOOS=linux GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" -o / . ./gate ./agent

FROM scratch AS gate
COPY --from=build /gate /agent /
USER 65532:65532
ENTRYPOINT ["/gate"]

FROM scratch
COPY --from=build /stateful-operator /stateful-operator
COPY --from=build /gate /agent /
USER 65532:65532
ENTRYPOINT ["/stateful-operator"]
