"""Names of the sections of a record of work, as people and models write them in thirteen languages. Pure.

Invariants: a name belongs to one subject; names are compared without case, numbers, signs and pictures around them; a
heading that holds more words than a name is known by the longest name in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from indexer.common.patterns import lazy_regex

# What a section is about, and the subjects that its lines go to where nobody asked for that one.
_NEXT_BEST = {
    "goal": ("context",),
    "constraints": ("decisions", "context"),
    "decisions": ("constraints", "context"),
    "progress": ("done", "in progress"),
    "done": ("progress", "context"),
    "in progress": ("todos", "progress", "next", "context"),
    "failed": ("blocked", "context", "done"),
    "blocked": ("failed", "asks", "in progress", "context"),
    "asks": ("todos", "next", "blocked", "context"),
    "todos": ("in progress", "next", "asks"),
    "next": ("todos", "in progress", "asks"),
    "files": ("identifiers", "context"),
    "identifiers": ("context", "files"),
    "context": ("identifiers", "files", "done"),
}  # fmt: skip
_NAMES = {
    "goal": (
        "goal|goals|objective|objectives|aim|purpose|task|the task|main task|primary request|request|user goal|intent"
        "|what the user wants|mission|overview|ziel|ziele|aufgabe|auftrag|zweck|but|objectif|objectifs|tâche|meta|metas"
        "|objetivo|objetivos|tarea|tarefa|obiettivo|obiettivi|compito|doel|doelen|doelstelling|taak|cel|cele|zadanie"
        "|цель|цели|задача|задание|hedef|hedefler|amaç|görev|mål|목표|목적|과제|目標|目标|目的|任务|任務|ゴール|タスク"
    ),
    "constraints": (
        "user constraints|constraints|constraints and preferences|constraints and rules|constraints rules|rules"
        "|user rules|preferences|user preferences|requirements|restrictions|limits|guidelines|user requirements"
        "|vorgaben|einschränkungen|vorgaben des nutzers|regeln|beschränkungen|bedingungen|anforderungen"
        "|rahmenbedingungen"
        "|nutzervorgaben|contraintes|contraintes de l utilisateur|règles|exigences|préférences|restricciones"
        "|restricciones del usuario|reglas|requisitos|restrições|restrições do usuário|regras|vincoli"
        "|vincoli dell utente|regole|requisiti|beperkingen|regels|eisen|ograniczenia|zasady|wymagania|ограничения"
        "|требования|правила|предпочтения|kısıtlamalar|kısıtlar|kurallar|begränsningar|regler|krav|제약|제약 사항"
        "|제약사항"
        "|사용자 제약|규칙|요구사항|制約|制約条件|ユーザーの制約|ルール|要件|约束|約束|限制|用户约束|用户要求"
        "|用户的要求|要求|规则|規則|偏好"
        "|要求和偏好|要求和规则|約束與偏好|约束与偏好|约束和偏好"
    ),
    "decisions": (
        "decisions|decision|key decisions|decisions made|agreements|choices|entscheidungen|beschlüsse|entschieden"
        "|wichtige entscheidungen|décisions|décisions clés|décisions prises|decisiones|decisiones clave"
        "|decisões|decisões importantes|decisioni|decisioni chiave|beslissingen|besluiten|decyzje|решения"
        "|ключевые решения|принятые решения|kararlar|alınan kararlar|beslut|결정|결정 사항|결정사항|決定|決定事項"
        "|决定|決策|决策"
        "|重要决定|关键决定"
    ),
    "progress": (
        "progress|status|state|current state|current status|work state|work status|fortschritt|stand|progrès|avancement"
        "|état|progreso|estado|progresso|stato|voortgang|stand van zaken|postęp|postępy|stan|прогресс|ход работы"
        "|состояние|ilerleme|durum|framsteg|진행|진행 상황|진행상황|현황|進捗|状況|进展|進展|进度|進度|状态|狀態"
    ),
    "done": (
        "done|completed|finished|accomplished|accomplishments|what was done|work done|work completed|results|solved"
        "|resolved|completed work|completed tasks|erledigt|fertig|abgeschlossen|getan|ergebnisse|erledigtes|fait"
        "|terminé"
        "|accompli|réalisé|effectué|ce qui a été fait|hecho|completado|terminado|realizado|feito|concluído|completo"
        "|fatto|completato|concluso|gedaan|klaar|voltooid|afgerond|zrobione|ukończone|wykonane|сделано|готово"
        "|выполнено|завершено|yapılanlar|tamamlanan|tamamlananlar|bitti|klart|gjort|färdigt|완료|완료됨|완료된 작업"
        "|한 일"
        "|完了|完了済み|済み|済|已完成|完成|已做|做完的|已完成的工作"
    ),
    "in progress": (
        "in progress|ongoing|current work|currently|active|work in progress|wip|underway|working on|in arbeit|laufend"
        "|in bearbeitung|läuft|aktuell|begonnen|en cours|travail en cours|en curso|en progreso|en proceso|em andamento"
        "|em curso|em progresso|in corso|in uitvoering|bezig|mee bezig|w toku|w trakcie|в процессе|в работе"
        "|выполняется|devam eden|devam edenler|sürüyor|pågår|pågående|진행 중|진행중|하는 중|進行中|作業中|进行中"
        "|正在进行|正在做"
    ),
    "failed": (
        "failed attempts|failed|failures|errors|errors and fixes|tried and failed|what failed|what did not work"
        "|unsuccessful attempts|dead ends|problems|issues|fehlversuche|fehlgeschlagen|fehlgeschlagene versuche|fehler"
        "|gescheitert|gescheiterte versuche|probleme|tentatives échouées|échecs|échoué|essais ratés|erreurs|problèmes"
        "|intentos fallidos|fallos|fallidos|errores|problemas|tentativas falhas|tentativas fracassadas"
        "|tentativas falhadas|falhas|erros|tentativi falliti|errori|fallimenti|mislukte pogingen|mislukt|fouten"
        "|nieudane próby|błędy|niepowodzenia|неудачные попытки|неудачи|ошибки|başarısız denemeler|hatalar|başarısız"
        "|misslyckade försök|misslyckat|fel|실패한 시도|실패|오류|失敗した試み|失敗|エラー|失败的尝试|失敗的嘗試"
        "|失败|错误|错误和修复"
    ),
    "blocked": (
        "blocked|blockers|blocking|waiting|on hold|stuck|blockiert|wartend|hindernisse|bloqué|bloquant|blocages"
        "|bloqueado|bloqueos|bloqueios|impedimentos|bloccato|blocchi|geblokkeerd|zablokowane|blokady|заблокировано"
        "|блокеры|препятствия|engellenen|engeller|blockerat|차단됨|막힌 것|ブロック中|ブロック|保留中|受阻|阻塞|卡住"
    ),
    "asks": (
        "open asks|open questions|pending user asks|pending asks|questions|unanswered|unanswered questions|pending"
        "|outstanding questions|pending questions|open requests|offene fragen|offene bitten|offene anfragen|offen"
        "|fragen|offene punkte|questions ouvertes|demandes en attente|en attente|questions en suspens"
        "|preguntas abiertas|preguntas pendientes|pendientes|solicitudes pendientes|perguntas em aberto"
        "|perguntas abertas|pedidos pendentes|pendências|domande aperte|richieste in sospeso|richieste aperte"
        "|open vragen|openstaande vragen|otwarte pytania|pytania|открытые вопросы|вопросы|нерешённые вопросы"
        "|нерешенные вопросы|açık sorular|sorular|bekleyenler|öppna frågor|미해결 질문|열린 질문|미해결 요청|질문"
        "|未解決の質問"
        "|未回答の質問|質問|未回答|待回答|未决问题|未解决的问题|用户待回答的问题|问题|待解答"
    ),
    "todos": (
        "open todos|todos|todo|to do|to do list|remaining|remaining work|remaining tasks|open tasks|pending tasks"
        "|tasks|backlog|aufgabenliste|noch zu tun|zu tun|ausstehend|ausstehende aufgaben|à faire|tâches restantes"
        "|reste à faire|por hacer|tareas pendientes|a fazer|tarefas pendentes|da fare|attività rimanenti|te doen"
        "|nog te doen|do zrobienia|pozostałe zadania|осталось|осталось сделать|что осталось|задачи|yapılacaklar"
        "|kalan işler|att göra|할 일|남은 작업|未完了|やること|残作業|残りのタスク|待办|待辦|待办事项|待解决"
        "|剩余工作|未完成"
    ),
    "next": (
        "next step|next steps|next|next move|next action|next actions|what is next|what s next|upcoming|plan"
        "|nächster schritt|nächste schritte|als nächstes|weiteres vorgehen|prochaine étape|prochaines étapes|suite"
        "|étape suivante|siguiente paso|siguientes pasos|próximo paso|próximos pasos|próximo passo|próximos passos"
        "|prossimo passo|prossimi passi|passo successivo|passi successivi|volgende stap|volgende stappen"
        "|następny krok|następne kroki|kolejne kroki|kolejny krok|следующий шаг|следующие шаги|дальнейшие шаги"
        "|sonraki adım|sonraki adımlar|nästa steg|다음 단계|다음|次のステップ|次の手順|次の一手|次|下一步|後續步驟"
        "|后续步骤|接下来|下一步骤|后续"
    ),
    "files": (
        "relevant files|files|files and code|important files|key files|modified files|file list|files touched|dateien"
        "|relevante dateien|wichtige dateien|fichiers|fichiers pertinents|archivos|archivos relevantes|ficheros"
        "|arquivos|arquivos relevantes|ficheiros|file rilevanti|bestanden|relevante bestanden|pliki|istotne pliki"
        "|файлы|важные файлы|dosyalar|ilgili dosyalar|filer|파일|관련 파일|ファイル|関連ファイル|文件|相关文件"
        "|重要文件|檔案|相關檔案"
    ),
    "identifiers": (
        "exact identifiers|identifiers|ids|references|exact values|kennungen|bezeichner|genaue kennungen|identifiants"
        "|identificadores|identificatori|identificatoren|identyfikatory|идентификаторы|tanımlayıcılar|identifierare"
        "|식별자|識別子|标识|标识符|确切标识|識別碼"
    ),
    "context": (
        "context|critical context|important context|background|facts|key facts|important details|details|notes|info"
        "|information|important information|additional context|technical context|key information|technical concepts"
        "|summary|lookup hints|kontext|hintergrund|fakten|wichtiges|notizen|zusammenhang|wichtige fakten|contexte"
        "|arrière plan|faits|contexte important|contexto|datos|antecedentes|hechos|contexto crítico|fatos|notas"
        "|contesto|fatti|note|achtergrond|feiten|tło|fakty|контекст|факты|фон|справка|bağlam|gerçekler|notlar"
        "|bakgrund|sammanhang|fakta|맥락|배경|사실|컨텍스트|文脈|背景|コンテキスト|事実|补充|关键事实|事实|要点"
        "|上下文|關鍵背景|关键背景"
    ),
}
_SIGNS = lazy_regex(r"[\W\d_]+")
_ASIDE = lazy_regex(r"[(（\[【][^()（）\[\]【】]{0,80}[)）\]】]\s*[:：]?\s*\Z")
_LONGEST_CHARS = 60


@cache
def _subjects() -> dict[str, str]:
    return {name: subject for subject, names in _NAMES.items() for name in map(_plain, names.split("|"))}


@cache
def _phrases() -> re.Pattern[str]:
    """The names of two words, or of one that is long, within a heading."""
    long = [name for name in _subjects() if len(name) > (4 if name.isascii() else 1)]
    names = "|".join(sorted(map(re.escape, long), key=len, reverse=True))
    return re.compile(rf"(?<![^\W\d_])(?:{names})(?![^\W\d_])")


def _plain(heading: str) -> str:
    text = unicodedata.normalize("NFKC", heading).casefold().replace("&", " and ")
    return _SIGNS.sub(" ", text).strip()


def section_subject(heading: str, *, whole: bool = False) -> str:
    """Subject of a heading, such as "done"; empty for one that nobody knows.

    Args:
        heading: In any of the languages, with whatever stands around its words.
        whole: Whether the heading has to be a name and nothing else.
    """
    if len(heading) > _LONGEST_CHARS:
        return ""
    plain = _plain(_ASIDE.sub("", heading)) or _plain(heading)
    found = _subjects().get(plain, "")
    if found or whole:
        return found
    named = max(_phrases().findall(plain), key=len, default="")
    return _subjects().get(named, "")


def next_subjects(subject: str) -> Iterator[str]:
    """A subject, and those that its lines go to where nobody asked for it, the best first."""
    if subject:
        yield subject
        yield from _NEXT_BEST[subject]
