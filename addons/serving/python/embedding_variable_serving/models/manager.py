# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The versions of all models: which exist, which load, which one a request uses.

One lock guards all states. Folders are listed, models loaded and sessions closed without
it, in threads of their own, so requests never wait for them.
"""

import collections
from concurrent import futures
import contextlib
import logging
import threading
import time

from embedding_variable_serving import errors
from embedding_variable_serving.models import folders

START, LOADING, AVAILABLE, UNLOADING, END = (
    "START", "LOADING", "AVAILABLE", "UNLOADING", "END")

# Ended versions of a model whose state and metrics stay visible.
_MAX_ENDED = 10

# Seconds for the requests in flight to end before a change of rows; others wait meanwhile.
_PAUSE_SECONDS = 2.0

# name: that of the model. base_path. policy: folders.Policy. labels: {label: number}.
ModelSettings = collections.namedtuple("ModelSettings",
                                       ["name", "base_path", "policy", "labels"])

# poll_seconds: between two listings of the folders; 0: list once. retries: after a failed
# load. retry_seconds: between them.
Options = collections.namedtuple(
    "Options", ["poll_seconds", "load_threads", "unload_threads", "retries", "retry_seconds",
                "labels_of_unavailable"])
Options.__new__.__defaults__ = (1.0, 2, 1, 5, 60.0, False)


class Version(object):
  """One version of a model. The manager's lock guards the attributes."""

  def __init__(self, model, number, path):
    self.model, self.number, self.path = model, number, path
    self.state = START
    self.error = None  # ServingError of a failed load.
    self.attempts = 0  # Loads that have ended.
    self.retry = None  # Timer of the next load after a failed one.
    self.servable = None
    self.wanted = True
    self.in_flight = 0
    self.paused = False  # New requests wait.
    self.updating = False  # Its follower runs, or is about to.
    self.forgotten = False  # Ended, and not in the folder since.


class _Model(object):

  def __init__(self, settings):
    self.settings = settings
    self.labels = {}
    self.versions = collections.OrderedDict()  # {number: Version}
    self.listed = False
    self.missing = False  # The last listing of the folder failed.
    self.removed = False

  def available(self):
    return [v for v in self.versions.values() if v.state == AVAILABLE]


class Manager(object):
  """Loads and unloads versions as folders and settings change."""

  def __init__(self, load, options=Options(), metrics=None):
    """Starts the threads.

    Args:
      load: function of (model name, number, path); returns an object with `close`. It has
        been warmed up. If it has a `follower`, deltas.Follower, that is called after every
        listing of the folders.
      options: Options.
      metrics: metrics.Metrics, or None.
    """
    self._load, self._options, self._metrics = load, options, metrics
    self._changed = threading.Condition()
    self._models = {}
    self._closing = False
    self._poll_now = True
    self._loaders = futures.ThreadPoolExecutor(max(1, options.load_threads), "load")
    self._unloaders = futures.ThreadPoolExecutor(max(1, options.unload_threads), "unload")
    self._updaters = futures.ThreadPoolExecutor(max(1, options.load_threads), "update")
    self._poller = threading.Thread(target=self._poll, name="poll", daemon=True)
    self._poller.start()

  def configure(self, settings):
    """Replaces the list of models; models that are not in it are unloaded.

    Args:
      settings: list of ModelSettings with different names.

    Raises:
      ServingError: FAILED_PRECONDITION, a label is on a version that is not available.
        Nothing has changed then.
    """
    with self._changed:
      for model in settings:
        self._check_labels(model)
      names = {model.name for model in settings}
      for name, model in list(self._models.items()):
        if name not in names:
          model.removed = True
          self._want(model, {})
      for new in settings:
        model = self._models.setdefault(new.name, _Model(new))
        model.settings, model.labels, model.removed = new, dict(new.labels), False
        model.listed = False
      self._poll_now = True
      self._changed.notify_all()

  def wait(self, names, timeout=None):
    """Waits until each model has an available version, or all its loads have failed.

    Returns:
      Bool, whether each has an available version.
    """
    def settled(model):
      return model is None or model.listed and (
          model.available() or all(v.state == END for v in model.versions.values()))
    with self._changed:
      self._changed.wait_for(
          lambda: self._closing or all(settled(self._models.get(n)) for n in names), timeout)
      return all(n in self._models and bool(self._models[n].available()) for n in names)

  def names(self):
    """Returns the sorted names of the models."""
    with self._changed:
      return sorted(name for name, model in self._models.items() if not model.removed)

  def is_ready(self):
    """Returns whether each model has an available version."""
    with self._changed:
      models = [m for m in self._models.values() if not m.removed]
      return bool(models) and not self._closing and all(m.available() for m in models)

  def status(self, name, number=None):
    """Returns [(number, state, ServingError or None)] of a model, newest first.

    Raises:
      ServingError: NOT_FOUND.
    """
    with self._changed:
      model = self._models.get(name)
      versions = list(model.versions.values()) if model else []
      found = [(v.number, v.state, v.error) for v in versions
               if number is None or v.number == number]
    if not found:
      raise errors.ServingError("NOT_FOUND", "Could not find any versions of model %s" % name)
    return sorted(found, key=lambda status: -status[0])

  def resolve(self, name, label):
    """Returns the number of a model's version with a label.

    Raises:
      ServingError: INVALID_ARGUMENT, or UNAVAILABLE while no model has a label.
    """
    with self._changed:
      model = self._models.get(name)
      if model is not None and label in model.labels:
        return model.labels[label]
      any_label = any(m.labels for m in self._models.values())
    raise errors.ServingError(
        "INVALID_ARGUMENT" if any_label else "UNAVAILABLE",
        "Unrecognized servable version label: %s of model %s" % (label, name))

  @contextlib.contextmanager
  def use(self, name, number=None):
    """Context with an available Version of a model, which is not unloaded meanwhile.

    Args:
      name: name of the model.
      number: number of the version; None: the newest available one.

    Raises:
      ServingError: NOT_FOUND.
    """
    version = self.enter(name, number)
    try:
      yield version
    finally:
      self.leave(version)

  def enter(self, name, number=None, waits=True):
    """Returns a Version as `use` does, which the caller must `leave`.

    Args:
      name, number: as for `use`.
      waits: bool; False: returns None if a delta changes the version now.
    """
    with self._changed:
      version = self._find(name, number)
      while version.paused:
        if not waits:
          return None
        self._changed.wait()
        version = self._find(name, number)
      version.in_flight += 1
      return version

  def leave(self, version):
    """Ends what `enter` began."""
    with self._changed:
      version.in_flight -= 1
      if version.paused or version.state == UNLOADING:
        self._changed.notify_all()

  def close(self, timeout=None):
    """Cancels loads that have not begun, waits for the others, closes all sessions."""
    with self._changed:
      self._closing = True
      for model in list(self._models.values()):
        model.removed = True
        self._want(model, {})
      self._changed.notify_all()
    self._poller.join(timeout)
    self._updaters.shutdown(wait=True)
    self._loaders.shutdown(wait=True)
    self._unloaders.shutdown(wait=True)

  def _find(self, name, number):
    model = self._models.get(name)
    if model is not None:
      if number is not None:
        version = model.versions.get(number)
        if version is not None and version.state == AVAILABLE:
          return version
      else:
        available = model.available()
        if available:
          return max(available, key=lambda v: v.number)
    which = "Latest(%s)" % name if number is None else "Specific(%s, %d)" % (name, number)
    raise errors.ServingError("NOT_FOUND", "Servable not found for request: " + which)

  def _check_labels(self, settings):
    model = self._models.get(settings.name)
    for label, number in settings.labels.items():
      version = model.versions.get(number) if model else None
      if version is not None and version.state == AVAILABLE:
        continue
      is_new = model is None or label not in model.labels
      if is_new and self._options.labels_of_unavailable:
        continue
      raise errors.ServingError(
          "FAILED_PRECONDITION",
          "label '%s' of model '%s' is for version %d, which is not available; load the "
          "version first%s" % (
              label, settings.name, number, ", or set "
              "--allow_version_labels_for_unavailable_models" if is_new else ""))

  def _poll(self):
    while True:
      with self._changed:
        wait = self._options.poll_seconds or None
        self._changed.wait_for(lambda: self._closing or self._poll_now, wait)
        if self._closing:
          return
        self._poll_now = False
        listed = [(model, model.settings) for model in self._models.values()
                  if not model.removed]
      for model, settings in listed:
        versions = folders.list_versions(settings.base_path)
        with self._changed:
          if model.settings is not settings or model.removed:
            continue
          was_missing, model.missing = model.missing, versions is None
          if versions is None and not was_missing:
            logging.warning("model %s: cannot list its folder %s", settings.name,
                            settings.base_path)
          elif versions is not None:
            self._want(model, folders.select(settings.policy, versions))
            self._update(model)
          model.listed = True
          self._changed.notify_all()

  def _update(self, model):
    """Calls the followers of a model's versions, in other threads. The caller has the lock."""
    for version in model.available():
      if getattr(version.servable, "follower", None) and not version.updating:
        version.updating = True
        self._updaters.submit(self._update_version, version)

  def _update_version(self, version):
    try:
      version.servable.follower.update(lambda: self._alone(version))
    except Exception:  # pylint: disable=broad-except
      logging.exception("model %s: version %d keeps its state", version.model.settings.name,
                        version.number)
    finally:
      with self._changed:
        version.updating = False
        self._changed.notify_all()

  @contextlib.contextmanager
  def _alone(self, version):
    """Context in which no request uses a version; its value is False if some do not end."""
    with self._changed:
      version.paused = True
      is_alone = self._changed.wait_for(lambda: not version.in_flight, _PAUSE_SECONDS)
    try:
      if not is_alone:
        logging.warning("model %s: version %d: requests run for more than %.0f s, a delta "
                        "waits", version.model.settings.name, version.number, _PAUSE_SECONDS)
        with self._changed:
          version.paused = False
          self._changed.notify_all()
      yield is_alone
    finally:
      with self._changed:
        version.paused = False
        self._changed.notify_all()

  def _want(self, model, wanted):
    """Sets the {number: path} that a model needs. The caller has the lock."""
    for version in model.versions.values():
      version.wanted = version.number in wanted
    for number in sorted(wanted, reverse=True):
      old = model.versions.get(number)
      # A version that ended because its folder was gone loads when the folder returns.
      if old is None or old.state == END and old.forgotten:
        model.versions.pop(number, None)
        model.versions[number] = version = Version(model, number, wanted[number])
        self._loaders.submit(self._load_version, version)
    self._advance(model)

  def _advance(self, model):
    """Ends versions that no policy selects. The caller has the lock."""
    serves = any(v.wanted and v.state == AVAILABLE for v in model.versions.values())
    wants = any(v.wanted for v in model.versions.values())
    for version in model.versions.values():
      if version.wanted:
        continue
      if version.retry is not None:
        version.retry.cancel()
        version.retry, version.state = None, END
      if version.state == END:
        version.forgotten = True
      # A version that is not selected serves until a selected one does.
      elif version.state == AVAILABLE and (serves or not wants):
        version.state = UNLOADING
        self._unloaders.submit(self._unload_version, version)
    ended = [v for v in model.versions.values() if v.state == END and not v.wanted]
    for version in ended[:-_MAX_ENDED]:
      del model.versions[version.number]
      self._forget(version)
    if model.removed and all(v.state == END for v in model.versions.values()):
      if self._models.get(model.settings.name) is model:
        del self._models[model.settings.name]
        for version in model.versions.values():
          self._forget(version)
    self._changed.notify_all()

  def _forget(self, version):
    if self._metrics is not None:
      self._metrics.forget(version.model.settings.name, version.number, version.path)

  def _load_version(self, version):
    name = version.model.settings.name
    with self._changed:
      if not version.wanted or self._closing:
        version.state = END
        self._advance(version.model)
        return
      version.state = LOADING
    begin, error, servable = time.time(), None, None
    try:
      servable = self._load(name, version.number, version.path)
    except Exception as e:  # pylint: disable=broad-except
      error = errors.wrapped(e)
    if self._metrics is not None:
      self._metrics.loaded(version.path, error, time.time() - begin)
    if error:
      logging.error("model %s: version %d does not load from %s: %s", name, version.number,
                    version.path, error.message)
    with self._changed:
      version.error = error
      version.attempts += 1
      if servable is not None:
        version.servable, version.state = servable, AVAILABLE
        logging.info("model %s: version %d serves, loaded in %.1f s", name, version.number,
                     time.time() - begin)
      elif version.attempts <= self._options.retries:
        # A version that waits keeps no thread of loads from others.
        version.retry = threading.Timer(self._options.retry_seconds, self._retry, [version])
        version.retry.daemon = True
        version.retry.start()
      else:
        version.state = END
      self._advance(version.model)

  def _retry(self, version):
    with self._changed:
      if version.retry is not None:
        version.retry = None
        self._loaders.submit(self._load_version, version)

  def _unload_version(self, version):
    with self._changed:
      self._changed.wait_for(lambda: not version.in_flight and not version.updating)
      servable, version.servable = version.servable, None
    try:
      servable.close()
    finally:
      with self._changed:
        version.state = END
        if version.wanted:  # Its folder has returned meanwhile.
          version.forgotten, self._poll_now = True, True
        self._advance(version.model)
