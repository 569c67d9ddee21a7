"""Translates what the gateway states: reasons, refusals, advice and its state in one line.

The gateway states them in English, `{}` stands for what differs: an id, a number, another reason. What is not in the
table is shown as it is.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

_LONGEST: Final = 600
"""A longer text is shown as it is: its parts would have to be looked for everywhere."""
_WORD: Final = r"(\S{1,200}?)"
_ANY: Final = r"(.+?)"

GERMAN: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Servers of the store
        "the replica {} is away: {}": "Replikat {} fehlt: {}",
        "it has no link to the primary": "es hat keine Verbindung zum Primary",
        "no sentinel reaches it": "kein Sentinel erreicht es",
        "the replica {} lags behind by {}": "Replikat {} ist im Rückstand: {}",
        "no replica: the loss of the primary stops the line": "kein Replikat: ohne Primary steht die Linie",
        "1 accepted job was lost in a failover: {}": "1 angenommener Auftrag ging bei einem Wechsel verloren: {}",
        "{} accepted jobs were lost in a failover: {}": "{} angenommene Aufträge gingen bei einem Wechsel verloren: {}",
        "the primary {} does not answer: {}": "der Primary {} antwortet nicht: {}",
        "the sentinel {} does not answer": "der Sentinel {} antwortet nicht",
        "the clock of {} is {} s ahead of that of this machine": "die Uhr von {} geht {} s vor der dieses Rechners",
        "the clock of {} is {} s behind that of this machine": "die Uhr von {} geht {} s nach der dieses Rechners",
        "{} keeps no append-only file: a power cut loses jobs while it is the primary": (
            "{} führt keine Append-only-Datei: als Primary verliert er bei einem Stromausfall Aufträge"
        ),
        "no majority of the sentinels confirms the primary: {}": (
            "keine Mehrheit der Sentinels bestätigt den Primary: {}"
        ),
        "Check its service, its log and the network": "Prüfen Sie Dienst, Protokoll und Netz",
        "Check its service and the network": "Prüfen Sie Dienst und Netz",
        "Check the network and the load of its machine": "Prüfen Sie das Netz und die Last des Rechners",
        "Start it: without a majority of them the line stands still": (
            "Starten Sie ihn: ohne eine Mehrheit von ihnen steht die Linie"
        ),
        "Start a replica of the primary": "Starten Sie ein Replikat des Primary",
        "Synchronise the clocks of both machines (chrony, NTP)": (
            "Synchronisieren Sie die Uhren beider Rechner (chrony, NTP)"
        ),
        # Login, roles, requests
        "the body is not JSON": "der Inhalt ist kein JSON",
        "Send it with Content-Type: {}": "Senden Sie ihn mit Content-Type: {}",
        "the body is not of the type {}: {}": "der Inhalt ist nicht vom Typ {}: {}",
        "The types are in {}/openapi.json": "Die Typen stehen in {}/openapi.json",
        "name, password or code is wrong": "Name, Passwort oder Code ist falsch",
        "Check them and the code; after some failures a login has to wait": (
            "Prüfen Sie sie und den Code; nach einigen Fehlversuchen muss eine Anmeldung warten"
        ),
        "this needs a login": "dafür ist eine Anmeldung nötig",
        "Log in, or send a user name and a token": "Melden Sie sich an, oder senden Sie Benutzer und Token",
        "this needs the role {}": "dafür ist die Rolle {} nötig",
        "{} needs the role {}": "{} braucht die Rolle {}",
        "Log in as a user with this role": "Melden Sie sich mit dieser Rolle an",
        "Log in as a user": "Melden Sie sich als Benutzer an",
        "too many pages follow changes already": "zu viele Seiten folgen bereits Änderungen",
        "{} pages follow changes already": "{} Seiten folgen bereits Änderungen",
        "Close one of them": "Schließen Sie eine davon",
        "the request comes from another site": "die Anfrage kommt von einer anderen Seite",
        "Use the page of the gateway itself; programs send a token and need no Origin": (
            "Verwenden Sie die Seite des Gateways selbst; Programme senden ein Token und brauchen kein Origin"
        ),
        "this login sends too many requests": "diese Anmeldung sendet zu viele Anfragen",
        "the kiosk sends too many requests": "der Kiosk sendet zu viele Anfragen",
        "Wait a few seconds": "Warten Sie einige Sekunden",
        "user name or token is wrong, or must wait": "Benutzer oder Token ist falsch oder muss warten",
        "the body is not a form": "der Inhalt ist kein Formular",
        "the form has too many fields": "das Formular hat zu viele Felder",
        "Leave it out": "Lassen Sie es weg",
        "Leave one of them out": "Lassen Sie eines davon weg",
        "Shorten it": "Kürzen Sie es",
        "Correct it": "Berichtigen Sie es",
        "Check it": "Prüfen Sie es",
        "{} is not a position": "{} ist keine Position",
        "Leave it out for the newest changes": "Lassen Sie sie weg für die neuesten Änderungen",
        "{} is not a state": "{} ist kein Zustand",
        "States are {}": "Zustände sind {}",
        "{} is not a level": "{} ist keine Stufe",
        "Levels are {}": "Stufen sind {}",
        "{} is not a number of jobs": "{} ist keine Anzahl von Aufträgen",
        "Leave it out for the first jobs": "Lassen Sie sie weg für die ersten Aufträge",
        "{} is not a number of a cycle": "{} ist keine Nummer eines Zyklus",
        "Leave it out for the last cycle": "Lassen Sie sie weg für den letzten Zyklus",
        "the request met a defect of this software": "die Anfrage traf auf einen Fehler dieser Software",
        "Report it with the output of: edge support-bundle FILE": (
            "Melden Sie ihn mit der Ausgabe von: edge support-bundle FILE"
        ),
        # Jobs
        "{} is refused: {}": "{} ist abgelehnt: {}",
        "{} is not allowed in state {}": "{} ist im Zustand {} nicht erlaubt",
        "{} is not allowed in its present state": "{} ist im jetzigen Zustand nicht erlaubt",
        "Look at the state of the job": "Sehen Sie den Zustand des Auftrags an",
        "Look at the list of jobs": "Sehen Sie in die Liste der Aufträge",
        "Look at what the station accepts: mode, Work Masters, limit": (
            "Sehen Sie an, was die Station annimmt: Betriebsart, Arbeitspläne, Grenze"
        ),
        "there is no job order {}": "es gibt keinen Auftrag {}",
        "Find its id: edge jobs list": "Die Ids zeigt: edge jobs list",
        "no such job order in this scope": "diesen Auftrag gibt es in dieser Station nicht",
        "no such running job order in this scope": "in dieser Station läuft kein solcher Auftrag",
        "a job order of this id is stored already": "ein Auftrag mit dieser Id ist bereits gespeichert",
        "the job order was removed after this call was sent": (
            "der Auftrag wurde entfernt, nachdem dieser Aufruf gesendet war"
        ),
        "the station holds {} job orders that have not ended, and may hold no more": (
            "die Station hat {} Aufträge, die nicht beendet sind, und darf keine weiteren haben"
        ),
        "{} results wait for the MES: subscribe to them, clear them, or export them with edge jobs export": (
            "{} Ergebnisse warten auf das MES: holen, entfernen oder mit edge jobs export sichern"
        ),
        "{} is not known to this station": "{} ist dieser Station nicht bekannt",
        "{} is empty": "{} ist leer",
        "{} is longer than {} characters": "{} ist länger als {} Zeichen",
        "{} holds a character that cannot be printed": "{} enthält ein Zeichen, das nicht druckbar ist",
        "{} may not begin with {}": "{} darf nicht mit {} beginnen",
        "{} is larger than {} bytes of JSON": "{} ist größer als {} Bytes JSON",
        "{} is nested deeper than {} levels": "{} ist tiefer als {} Ebenen verschachtelt",
        "{} holds a text longer than {} characters": "{} enthält einen Text, der länger als {} Zeichen ist",
        "Priority is not an Int16": "Die Priorität ist kein Int16",
        "the stored data of job order {} cannot be decoded: {}": (
            "die gespeicherten Daten des Auftrags {} sind nicht lesbar: {}"
        ),
        "Restore a backup: edge restore --help": "Stellen Sie eine Sicherung wieder her: edge restore --help",
        "the message expired {} ms ago": "die Nachricht ist vor {} ms abgelaufen",
        "If still wanted, send a new one": "Senden Sie bei Bedarf eine neue",
        "job {} has not started": "Auftrag {} hat nicht begonnen",
        "It has a chart once it was started": "Er hat einen Ablaufplan, sobald er begonnen hat",
        "this gateway has no scope {}": "dieses Gateway hat keine Station {}",
        "Look at the status": "Sehen Sie den Status an",
        "this gateway stores no traces": "dieses Gateway speichert keine Kurven",
        "Set [traces] directory": "Setzen Sie [traces] directory",
        "job {} has no trace {}": "Auftrag {} hat keine Kurve {}",
        "job {} has no file {}": "Auftrag {} hat keine Datei {}",
        "Look at the results of the job": "Sehen Sie die Ergebnisse des Auftrags an",
        "the trace has no curve {}": "die Aufzeichnung hat keine Kurve {}",
        "It has {}": "Sie hat {}",
        "the trace cannot be read: {}": "die Aufzeichnung ist nicht lesbar: {}",
        "the trace {} is not stored any more": "die Aufzeichnung {} ist nicht mehr gespeichert",
        "the content of {} does not match its hash": "der Inhalt von {} passt nicht zu seiner Prüfsumme",
        "Take another copy": "Nehmen Sie eine andere Kopie",
        # Interventions
        "`data` is the result of an action that was done": "`data` ist das Ergebnis einer ausgeführten Aktion",
        "the job is paused: resume it first": "der Auftrag ist angehalten: setzen Sie ihn zuerst fort",
        "an action failed after its step was left: retry or skip it first": (
            "eine Aktion schlug fehl, nachdem ihr Schritt verlassen war: wiederholen oder überspringen Sie sie zuerst"
        ),
        "the job does not run": "der Auftrag läuft nicht",
        "the outcome of action {} is not unknown": "der Ausgang der Aktion {} ist nicht unbekannt",
        "the step of action {} was activated again": "der Schritt der Aktion {} wurde erneut betreten",
        "the recipe does not allow {} for step {}": "das Rezept erlaubt {} für Schritt {} nicht",
        "the recipe does not allow {} for {}": "das Rezept erlaubt {} für {} nicht",
        "action {} of step {}": "Aktion {} von Schritt {}",
        "action {}": "Aktion {}",
        "step {}": "Schritt {}",
        "{} was not started in this run": "{} wurde in diesem Ablauf nicht gestartet",
        "{} is not {} in an active step": "{} ist in keinem aktiven Schritt {}",
        "{} is not active": "{} ist nicht aktiv",
        "step {} is not active": "Schritt {} ist nicht aktiv",
        "{} is done: its transition waits for a condition": "{} ist fertig: der Übergang wartet auf eine Bedingung",
        "no transition leads from {} to {}": "kein Übergang führt von {} nach {}",
        "the transition also leaves steps that are not active: {}": (
            "der Übergang verlässt auch Schritte, die nicht aktiv sind: {}"
        ),
        "{} asked for it with another result": "{} hat es mit einem anderen Ergebnis angefordert",
        "{} asked for it: the second person confirms it with a login at the gateway": (
            "{} hat es angefordert: die zweite Person bestätigt es mit einer Anmeldung am Gateway"
        ),
        "another person must ask for the same to confirm it": (
            "eine zweite Person muss dasselbe anfordern, um es zu bestätigen"
        ),
        "{} needs two people, and this one has no name": "{} braucht zwei Personen, und diese hat keinen Namen",
        "the request names no operator": "die Anfrage nennt keine Person",
        "Name the operator in `by`": "Nennen Sie die Person in `by`",
        "the request has no reason": "die Anfrage hat keinen Grund",
        "Say in `reason` what you have seen": "Sagen Sie in `reason`, was Sie gesehen haben",
        "operator and reason are longer than {} characters": "Person und Grund sind länger als {} Zeichen",
        "the names are longer than {} characters": "die Namen sind länger als {} Zeichen",
        "the data are larger than {} bytes of JSON": "die Daten sind größer als {} Bytes JSON",
        "the run is {} already": "der Ablauf ist bereits {}",
        # What a run waits for
        "the run has not started": "der Ablauf hat nicht begonnen",
        "the run is {}: {}": "der Ablauf ist {}: {}",
        "the run is {}": "der Ablauf ist {}",
        "paused for {} s": "angehalten seit {} s",
        "{w}: no value yet": "{}: noch kein Wert",
        "{w} is {}": "{} ist {}",
        "never true": "nie wahr",
        "lock {}": "Sperre {}",
        "not free": "nicht frei",
        "waits for {} s": "wartet seit {} s",
        "times out in {} s": "Zeitlimit in {} s",
        "held by {}": "gehalten von {}",
        "action {w} of {w} failed: waits for a person ({})": (
            "Aktion {} von {} ist fehlgeschlagen: wartet auf eine Person ({})"
        ),
        "action {w} of {w} {}: waits for a person ({})": "Aktion {} von {} {}: wartet auf eine Person ({})",
        "{w} {}, asked for by {}: waits for a second person for {} s": (
            "{} {}, angefordert von {}: wartet {} s auf eine zweite Person"
        ),
        "failed": "fehlgeschlagen",
        "failed: {}": "fehlgeschlagen: {}",
        "timed out": "Zeitlimit überschritten",
        "timed out after {}": "Zeitlimit nach {} überschritten",
        "outcome unknown: {}": "Ausgang unbekannt: {}",
        "outcome unknown": "Ausgang unbekannt",
        "never sent": "nie gesendet",
        "never sent: {}": "nie gesendet: {}",
        "may have been sent": "vielleicht gesendet",
        "may have been sent: {}": "vielleicht gesendet: {}",
        "its time passed before a gateway could send it": "seine Zeit war vorbei, bevor ein Gateway ihn senden konnte",
        "its job ended before a gateway could send it": "sein Auftrag endete, bevor ein Gateway ihn senden konnte",
        "it ended before a gateway could send it": "er endete, bevor ein Gateway ihn senden konnte",
        "not sent yet": "noch nicht gesendet",
        "{w} at {} is not connected: {}": "{} an {} ist nicht verbunden: {}",
        "completed": "fertig",
        "aborted": "abgebrochen",
        "stopped": "gestoppt",
        "unknown": "unbekannt",
        "pending": "anstehend",
        "dispatched": "gesendet",
        "waiting": "wartend",
        "retry": "Wiederholen",
        "skip": "Überspringen",
        "force": "Erzwingen",
        "complete": "Beenden",
        # Alarms and tags
        "there is no alarm {}": "es gibt keinen Alarm {}",
        "List the alarms: edge alarms list": "Die Alarme zeigt: edge alarms list",
        "The alarm is {}": "Der Alarm ist {}",
        "the same request is being executed": "dieselbe Anfrage wird gerade ausgeführt",
        "Repeat it to read its answer": "Wiederholen Sie sie, um die Antwort zu lesen",
        "the request changes nothing": "die Anfrage ändert nichts",
        "the alarm is acknowledged already": "der Alarm ist bereits quittiert",
        "only an acknowledged alarm that is not confirmed can be confirmed": (
            "nur ein quittierter, nicht bestätigter Alarm kann bestätigt werden"
        ),
        "only a latched alarm that is acknowledged can be reset": (
            "nur ein quittierter, selbsthaltender Alarm kann zurückgesetzt werden"
        ),
        "the end of the shelving has passed": "das Ende der Stummschaltung ist vorbei",
        "the condition has ended; shelve the alarm until an instant": (
            "die Bedingung ist beendet; geben Sie für die Stummschaltung eine Dauer an"
        ),
        "the alarm is {} already": "der Alarm ist bereits {}",
        "the alarm is not shelved": "der Alarm ist nicht stummgeschaltet",
        "telemetry is off on this gateway": "die Telemetrie ist auf diesem Gateway aus",
        "Switch it on: [telemetry] mode = on": "Schalten Sie sie ein: [telemetry] mode = on",
        "there is no tag {}": "es gibt keine Variable {}",
        "Look at the list of tags": "Sehen Sie in die Liste der Variablen",
        "rule {} has no control chart of {}": "Regel {} hat keine Regelkarte von {}",
        "Look at the list": "Sehen Sie in die Liste",
        # Flows and recipes
        "there is no flow {}": "es gibt keinen Fluss {}",
        "List the flows to see their ids": "Die Liste der Flüsse zeigt ihre Ids",
        "flow {} has no running cycle": "Fluss {} hat keinen laufenden Zyklus",
        "Show the flow to see its state": "Der Fluss zeigt seinen Zustand",
        "flow {} has no node {} that has not ended": "Fluss {} hat keinen nicht beendeten Knoten {}",
        "flow {} has no component {}; it has {}, counted from 0": (
            "Fluss {} hat keinen Teil {}; er hat {}, gezählt ab 0"
        ),
        "flow {} has node kinds that are not installed here": "Fluss {} hat Knoten, die hier nicht installiert sind",
        "cycle {} of flow {} is not kept": "Zyklus {} von Fluss {} ist nicht mehr gespeichert",
        "Look at the flow": "Sehen Sie den Fluss an",
        "`node` and `component` exclude each other": "`node` und `component` schließen einander aus",
        "a reason has 1 to {} characters": "ein Grund hat 1 bis {} Zeichen",
        "flows are off on this gateway": "Flüsse sind auf diesem Gateway aus",
        "there is no Work Master {} in {}": "es gibt keinen Arbeitsplan {} in {}",
        "Look at the list of recipes": "Sehen Sie in die Liste der Rezepte",
        "Work Master {} has no recipe that can be drawn": "Arbeitsplan {} hat kein Rezept, das gezeichnet werden kann",
        "Check its recipe": "Prüfen Sie sein Rezept",
        "the recipe has faults: {}": "das Rezept hat Fehler: {}",
        "the simulation is refused: {}": "die Simulation ist abgelehnt: {}",
        "Correct the script": "Berichtigen Sie das Skript",
        "it prints more than {} bytes": "die Ausgabe ist länger als {} Bytes",
        "Shorten the horizon of the script": "Kürzen Sie den Zeitraum des Skripts",
        # The gateway
        "there is no lock of {} {}": "es gibt keine Sperre von {} {}",
        "Look at the list of locks": "Sehen Sie in die Liste der Sperren",
        "{} holds the lock of {} {} and is alive": "{} hält die Sperre von {} {} und lebt",
        "Wait for its end, or use --force when you know that it is gone": (
            "Warten Sie auf das Ende, oder verwenden Sie --force, wenn der Besitzer sicher weg ist"
        ),
        "Wait for its end; `edge locks list` shows all locks": "Warten Sie das Ende ab; Sperren zeigt: edge locks list",
        "there is no session {}": "es gibt keine Sitzung {}",
        "Look at the list of sessions": "Sehen Sie in die Liste der Sitzungen",
        "the message has more than {} characters": "die Meldung hat mehr als {} Zeichen",
        "the end of the maintenance has passed": "das Ende der Wartung ist vorbei",
        "Name an instant ahead": "Nennen Sie einen späteren Zeitpunkt",
        "there is no operation {}": "es gibt keinen Vorgang {}",
        "List them: edge operations list": "Die Vorgänge zeigt: edge operations list",
        "operation {} is {}": "Vorgang {} ist {}",
        "It cannot be changed so": "So kann er nicht geändert werden",
        "no rejected certificate has the thumbprint {}": "kein abgewiesenes Zertifikat hat den Fingerabdruck {}",
        "Look at the list of certificates": "Sehen Sie in die Liste der Zertifikate",
        "edge {} took more than {} s": "edge {} dauerte länger als {} s",
        "Call it in a terminal: edge {}": "Rufen Sie es in einem Terminal auf: edge {}",
        "{w} job at work": "{} Auftrag in Arbeit",
        "{w} jobs at work": "{} Aufträge in Arbeit",
        "store holds {w} MiB": "Speicher belegt {} MiB",
        "store {w} full": "Speicher zu {} voll",
        "station differs from its files: {}": "Station weicht von ihren Dateien ab: {}",
        "{w} not in the files": "{} nicht in den Dateien",
        "{w} changed": "{} geändert",
        "{w} missing": "{} fehlend",
        "aborted by the MES": "vom MES abgebrochen",
        "stopped by the MES": "vom MES gestoppt",
        "aborted by {} at the station page": "von {} an der Stationsseite abgebrochen",
        "stopped by {} at the station page": "von {} an der Stationsseite gestoppt",
        "aborted by {} at the command line": "von {} an der Kommandozeile abgebrochen",
        "stopped by {} at the command line": "von {} an der Kommandozeile gestoppt",
        "aborted by {} over OPC UA": "von {} über OPC UA abgebrochen",
        "stopped by {} over OPC UA": "von {} über OPC UA gestoppt",
        "aborted by a program over RPC": "von einem Programm über RPC abgebrochen",
        "stopped by a program over RPC": "von einem Programm über RPC gestoppt",
        "aborted by alarm {}": "durch den Alarm {} abgebrochen",
        "nothing subscribes to {w}": "niemand abonniert {}",
        "cannot connect to {}: {}": "keine Verbindung zu {}: {}",
        "the OPC UA server {} does not serve us: {}": "der OPC-UA-Server {} bedient uns nicht: {}",
        "the OPC UA server {} is not trusted: {}": "dem OPC-UA-Server {} wird nicht vertraut: {}",
        "MID {w}: no answer within {w} s": "MID {}: keine Antwort innerhalb von {} s",
        "MID {w} declined: {}": "MID {} abgelehnt: {}",
        "the controller has closed the connection": "die Steuerung hat die Verbindung geschlossen",
        "the controller is silent for {w} s": "die Steuerung schweigt seit {} s",
        "no answer in time": "keine Antwort in der Zeit",
        "published by itself, or by its broker after a lost connection": (
            "gemeldet von ihm selbst, oder von seinem Broker nach einem Verbindungsverlust"
        ),
        "{w} recipes wait for their check": "{} Rezepte warten auf ihre Prüfung",
        "{w} simulations wait for their turn": "{} Simulationen warten, bis eine andere endet",
        "The service needs access to the folders of [opcua] pki and trusted": (
            "Der Dienst braucht Zugriff auf die Ordner von [opcua] pki und trusted"
        ),
        "Try again in a few seconds": "Versuchen Sie es in einigen Sekunden wieder",
        "clock not synchronised": "Uhr nicht synchronisiert",
        "broker unavailable: {}": "Broker nicht erreichbar: {}",
        "broker refuses: {}": "Broker lehnt ab: {}",
        "broker refuses subscriptions of {}: {}": "Broker lehnt Abonnements von {} ab: {}",
        "equipment disconnected: {}": "Ausrüstung getrennt: {}",
        "the tool may still be active, not confirmed since {}Z: {}": (
            "das Werkzeug ist vielleicht noch aktiv, nicht bestätigt seit {}Z: {}"
        ),
        "tool may still be active: {}": "Werkzeug ist vielleicht noch aktiv: {}",
        "no progress: {}": "kein Fortschritt: {}",
        "Redis cannot write to its disk: is it full?": "Redis kann nicht auf die Platte schreiben: ist sie voll?",
        "Redis does not answer within {} s": "Redis antwortet nicht innerhalb von {} s",
        "Redis does not answer: {}": "Redis antwortet nicht: {}",
        "Redis cannot serve now: {}": "Redis kann jetzt nicht antworten: {}",
        "Read the log of the Redis server": "Lesen Sie das Protokoll des Redis-Servers",
        "{w} of at most {w} undelivered results kept in {}": "{} von höchstens {} nicht abgeholten Ergebnissen in {}",
        "{w} of at most {w} marks of messages kept": "{} von höchstens {} Marken von Nachrichten",
        "starting": "startet",
    }
)
"""What the gateway states -> German. `{w}` stands for one word; a full stop at the end is left out."""


def _compiled(text: str) -> re.Pattern[str]:
    escaped = re.escape(text).replace(r"\{w\}", _WORD).replace(r"\{\}", _ANY)
    return re.compile(rf"{escaped}(\.?)")


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the table for texts with gaps: the one with the longest fixed text first."""
    ordered = sorted((text for text in GERMAN if "{" in text), key=len, reverse=True)
    return tuple((_compiled(text), GERMAN[text]) for text in ordered)


def reason_in(text: str, language: str) -> str:
    """Return what the gateway states in a language of the catalogue; as it is where the table has no text for it."""
    return _german(text) if language == "de" else text


@lru_cache(maxsize=1024)
def _german(text: str) -> str:
    if len(text) > _LONGEST:
        return text
    if (found := GERMAN.get(text.removesuffix("."))) is not None:
        return found + "." * text.endswith(".")
    if "; " in text:
        return "; ".join(map(_german, text.split("; ")))
    for pattern, german in _patterns():
        if match := pattern.fullmatch(text):
            *inner, end = match.groups()
            return german.format(*map(_german, inner)) + end
    return ", ".join(map(_german, text.split(", "))) if ", " in text else text
