"""Words of languages that have no file of their own yet: data alone.

Who makes one of them a file takes its words from here along.
"""

from indexer.language.base import Days, Grammar, Language, Replies, Sections

OTHERS: tuple[Language, ...] = (
    Language(
        name="French",
        grammar=Grammar(
            grammar_words=(
                "le les des une est et pour dans que qui pas nous vous je il elle ils sur avec au aux ce cette ces "
                "son sa ses mon ma mes notre votre leur plus ne se du par sont été être avoir ont mais ou où quand "
                "comme chez sans très tous tout toujours jamais c'est d'un d'une qu'il n'est l'on chaque après avant "
                "avons"
            ),
        ),
        days=Days(
            months=(
                "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
                "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
            ),
            day_words={"avant-hier": -2, "hier": -1, "aujourd'hui": 0, "aujourd’hui": 0, "demain": 1},
            ambiguous=frozenset({"hier"}),
            latest="récemment|recemment|dernièrement|ces derniers temps",
            happening="passé",
        ),
        replies=Replies(
            assents=(
                "oui|ouais|d'accord|parfait|très bien|bien|bien sûr|vas-y|allez-y|ça marche|ça me va|entendu|validé"
                "|c'est bon"
            ),
            refusals="(?:je suis )?(?:vraiment )?désolée?|je ne (?:peux|suis) pas|en tant qu|malheureusement",
            denials="non",
            go_on="continuer|continuez|poursuis|poursuivez|encore",
            go_on_ends="s['’]il (?:te|vous) plaît",
            go_on_leads="oui",
            thanks="merci",
            all_options="les deux|tou(?:s|tes)",
            ordinals={1: "premi[eè]re?", 2: "deuxième|seconde?", 3: "troisième", 4: "quatrième", -1: "dernière?"},
        ),
    ),
    Language(
        name="Spanish",
        grammar=Grammar(
            grammar_words=(
                "el los las una del que por para con está es en y se lo al su sus como más pero muy mi nos nuestro "
                "nuestra yo ella fue ha han hay cuando porque donde desde hasta sin sobre todos cada siempre nunca "
                "también este esta esto son era tiene tengo ya hoy mañana le les un la de"
            ),
        ),
        days=Days(
            months=("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",),
            day_words={"anteayer": -2, "antier": -2, "ayer": -1, "hoy": 0},
            latest="recientemente|últimamente",
            happening="pasó",
        ),
        replies=Replies(
            assents="sí|si|vale|perfecto|de acuerdo|muy bien|claro|adelante|por supuesto|hazlo|está bien|dale|listo",
            refusals=(
                "lo siento|no puedo|como (?:un |una |uma |um )?(?:modelo|ia|inteligencia|inteligência)|lamentablemente"
            ),
            denials="no gracias",
            go_on="continúa|continua|continúe|sigue|siga|adelante|seguir|otra vez",
            go_on_leads="sí|vale",
            thanks="gracias",
            all_options="amb[oa]s|todos|todas",
            ordinals={1: "primer[oa]?", 2: "segund[oa]", 3: "tercer[oa]?", 4: "cuart[oa]", -1: "últim[oa]"},
        ),
    ),
    Language(
        name="Portuguese",
        grammar=Grammar(
            grammar_words=(
                "o os uma não que para com em é do da dos das na nos nas um ao aos pelo pela mais mas muito meu "
                "minha nosso nossa ele ela eu foi são está tem quando porque onde desde até sem sobre cada sempre "
                "nunca também isso este esta depois antes já às à você"
            ),
        ),
        days=Days(
            months=("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",),
            day_words={"anteontem": -2, "ontem": -1, "hoje": 0, "amanhã": 1},
            latest="recentemente",
            happening="aconteceu",
        ),
        replies=Replies(
            assents=(
                "sim|certo|perfeito|pode|pode ser|pode fazer|combinado|ótimo|muito bem|tudo bem|beleza|está bom"
                "|faça isso"
            ),
            refusals="desculpe|sinto muito|não posso|infelizmente",
            denials="não",
            go_on="continue assim|prossiga|segue",
            go_on_ends="por favor",
            thanks="obrigado",
            ordinals={1: "primeir[oa]", 3: "terceir[oa]"},
        ),
    ),
    Language(
        name="Italian",
        grammar=Grammar(
            grammar_words=(
                "il lo gli una di che è per con non sono del della dei delle nel nella alla dal dalla sul sulla più "
                "ma anche come quando perché dove mio mia nostro lui lei noi ho hai abbiamo hanno questo questa ogni "
                "sempre mai dopo prima fino tutti tutto le i e un al"
            ),
        ),
        days=Days(
            months=("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",),
            day_words={"ieri": -1, "oggi": 0, "domani": 1, "l'altro ieri": -2},
            latest="ultimamente|di recente",
            happening="ha passato|successo",
        ),
        replies=Replies(
            assents="sì|va bene|perfetto|d'accordo|certo|procedi|ottimo|benissimo|fallo|certamente",
            refusals="mi (?:dis)?piace, (?:ma )?non|mi dispiace|non posso|come (?:modello|ia|intelligenza)",
            go_on="continuare|vai avanti|avanti|prosegui|ancora",
            go_on_ends="per favore",
            thanks="grazie",
            all_options="tutti",
            ordinals={1: "prim[oa]", 2: "second[oa]", 3: "terz[oa]", 4: "quart[oa]", -1: "ultim[oa]"},
        ),
    ),
    Language(
        name="Dutch",
        grammar=Grammar(
            grammar_words=(
                "het een van en niet dat voor met zijn op te ik wij je we hij zij ze maar ook als bij naar uit om "
                "aan wordt worden werd heeft hebben nog wel dan deze dit die door over onze mijn altijd nooit elke "
                "tot geen er"
            ),
        ),
        days=Days(
            months=("januari februari maart april mei juni juli augustus september oktober november december",),
            day_words={"eergisteren": -2, "gisteren": -1, "vandaag": 0},
            latest="onlangs",
            happening="gebeurd(?:e)?",
        ),
        replies=Replies(
            assents="goed|heel goed|akkoord|doe maar|doe dat|zeker|natuurlijk|klopt|mooi",
            refusals="het spijt me|ik kan (?:niet|geen|je|u)|als ai",
            denials="nee",
            go_on="ga door|doorgaan|ga verder|verder",
            go_on_ends="daarmee",
            ordinals={1: "eerste", 2: "tweede", 3: "derde", 4: "vierde", -1: "laatste"},
        ),
    ),
    Language(
        name="Polish",
        grammar=Grammar(
            grammar_words=(
                "i w na nie się z do że jest to jak o po ale przez dla od są był była co tak już tylko czy może "
                "przed nasz moja mój oraz kiedy gdzie każdy zawsze nigdy ma mam przy też jego jej ich"
            ),
        ),
        days=Days(
            months=(
                "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
            ),
            day_words={"przedwczoraj": -2, "wczoraj": -1, "dziś": 0, "dzisiaj": 0, "jutro": 1},
            latest="ostatnio",
        ),
        replies=Replies(
            assents="tak|dobrze|bardzo dobrze|zgoda|świetnie|jasne|oczywiście|zrób to",
            refusals="przykro mi|przepraszam|nie mogę|niestety",
            denials="nie",
            go_on="kontynuuj|dalej",
            ordinals={1: "pierwsz[ayę]", 2: "drug[aią]", 3: "trzeci[aą]?", 4: "czwart[aąy]", -1: "ostatni[aą]?"},
        ),
    ),
    Language(
        name="Turkish",
        grammar=Grammar(
            grammar_words=(
                "ve bir bu için ile çok da de ama olarak var yok her daha en gibi kadar sonra önce ben biz sen siz o "
                "değil mi mı ne nasıl hangi zaman olan oldu benim bizim hep hiç şu kez göre"
            ),
        ),
        days=Days(
            months=("ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",),
            day_words={"dün": -1, "bugün": 0, "yarın": 1},
        ),
        replies=Replies(
            assents="evet|tamam|olur|güzel|harika|mükemmel|elbette|tabii|tabi|onaylıyorum|yap",
            refusals="üzgünüm|maalesef|yardımcı olamam",
            denials="hayır",
            go_on="devam|devam et",
            ordinals={1: "birinci|ilk", 2: "ikinci", 3: "üçüncü", 4: "dördüncü", -1: "sonuncu"},
        ),
    ),
    Language(
        name="Vietnamese",
        grammar=Grammar(
            grammar_words=(
                "là và của có không được cho các một những với trong để này người đã đang sẽ khi ở từ đến tôi chúng "
                "anh chị thì mà ra vào lên về như nhưng cũng rất nhà ngày mỗi phải vì ai gì nào"
            ),
        ),
    ),
    Language(
        name="Indonesian",
        grammar=Grammar(
            grammar_words=(
                "yang dan di ke dari untuk dengan ini itu tidak ada akan pada saya kami kita adalah sudah bisa juga "
                "atau karena oleh setiap harus belum lebih hanya kalau mereka dia anda"
            ),
        ),
    ),
    Language(
        name="Swedish",
        grammar=Grammar(
            grammar_words=(
                "och att det som en ett är inte för med på av den till har jag vi du han hon de ska var kan från men "
                "om eller när där vår min alltid aldrig varje efter före också sig hos"
            ),
        ),
        days=Days(
            months=("januari februari mars april maj juni juli augusti september oktober november december",),
            day_words={"igår": -1, "idag": 0, "imorgon": 1, "i går": -1},
            latest="nyligen",
        ),
        replies=Replies(
            assents="bra|mycket bra|självklart|kör|gör det",
            refusals="jag kan (?:inte|tyvärr)|tyvärr|ledsen",
            denials="nej",
            go_on="fortsätt|kör vidare|gå vidare",
            ordinals={1: "första", 2: "andra", 3: "tredje", 4: "fjärde", -1: "sista"},
        ),
    ),
    Language(
        name="Danish or Norwegian",
        grammar=Grammar(
            grammar_words=(
                "og at det som en et er ikke for med på af av den til har jeg vi du han hun de skal var kan fra men "
                "om eller når hvor vår vores min alltid altid aldri aldrig hver etter efter før også seg sig hos"
            ),
        ),
    ),
    Language(
        name="Finnish",
        grammar=Grammar(
            grammar_words=(
                "ja on ei se että hän oli mutta kun myös joka ovat olen tai niin kuin vain jos mitä minun meidän "
                "minä me aina ennen jälkeen kanssa pitää tämä sen ole"
            ),
        ),
    ),
    Language(
        name="Czech or Slovak",
        grammar=Grammar(
            grammar_words=(
                "a je se na že to s z do v ve pro jak ale jsem jsme jsou byl byla není nebo podle který která když "
                "kde každý vždy nikdy po od si sa aby pre keď"
            ),
        ),
    ),
    Language(
        name="Hungarian",
        grammar=Grammar(
            grammar_words=(
                "az és hogy nem egy meg csak ha már még mert minden vagy volt lesz mint ezt azt után előtt mindig "
                "soha nekem nálunk kell"
            ),
        ),
    ),
    Language(
        name="Romanian",
        grammar=Grammar(
            grammar_words=(
                "și în de la nu este cu pe care un o să din pentru mai ce sau când sunt au am fost dar după înainte "
                "fiecare mereu niciodată noastră meu mea lui ei al ale"
            ),
        ),
    ),
    Language(
        name="Russian",
        days=Days(
            months=("января февраля марта апреля мая июня июля августа сентября октября ноября декабря",),
            day_words={"позавчера": -2, "вчера": -1, "сегодня": 0, "завтра": 1},
            latest="недавно",
            happening="произошло|случилось",
        ),
        replies=Replies(
            assents="да|хорошо|отлично|согласен|согласна|давай|давайте|конечно|ладно|верно|супер|принято",
            refusals="извините|простите|к сожалению|я не могу|как (?:ии|языковая)",
            denials="нет",
            go_on="продолжай|продолжайте|продолжи|дальше",
            go_on_leads="да",
            thanks="спасибо",
            ordinals={
                1: "первы[йе]|первую",
                2: "втор(?:ой|ую|ое)",
                3: "трет(?:ий|ью|ье)",
                4: "четверт(?:ый|ую|ое)",
                -1: "последн(?:ий|юю|ее)",
            },
        ),
        sections=Sections(
            names={
                "goal": "цель|цели|задача|задание",
                "constraints": "ограничения|требования|правила|предпочтения",
                "decisions": "решения|ключевые решения|принятые решения",
                "progress": "прогресс|ход работы|состояние",
                "done": "сделано|готово|выполнено|завершено",
                "in progress": "в процессе|в работе|выполняется",
                "failed": "неудачные попытки|неудачи|ошибки",
                "blocked": "заблокировано|блокеры|препятствия",
                "asks": "открытые вопросы|вопросы|нерешённые вопросы|нерешенные вопросы",
                "todos": "осталось|осталось сделать|что осталось|задачи",
                "next": "следующий шаг|следующие шаги|дальнейшие шаги",
                "files": "файлы|важные файлы",
                "identifiers": "идентификаторы",
                "context": "контекст|факты|фон|справка",
            },
        ),
    ),
    Language(
        name="Japanese",
        is_spaced=False,
        days=Days(
            day_words={"おととい": -2, "きのう": -1, "きょう": 0, "あした": 1, "一昨日": -2},
            latest_within="この頃|このごろ",
        ),
        replies=Replies(
            assents=(
                "はい|ええ|うん|いいです|いいですね|いいよ|いいね|お願いします|了解|了解です|問題ない|問題ありません"
                "|それで|承知しました|賛成|完璧"
            ),
            refusals="申し訳|すみません|ごめんなさい|お答えできません|お手伝いできません",
            denials="いいえ",
            go_on="続けて|続けてください|続き|続行|進めて",
            thanks="ありがとう",
            all_options="両方|全て",
            ordinals={1: "一つ目|最初", 2: "二つ目", 3: "三つ目", 4: "四つ目", -1: "最後"},
        ),
        sections=Sections(
            names={
                "goal": "ゴール|タスク",
                "constraints": "ユーザーの制約|ルール",
                "done": "完了済み|済み",
                "failed": "失敗した試み|エラー",
                "blocked": "ブロック中|ブロック",
                "asks": "未解決の質問|未回答の質問",
                "todos": "やること|残りのタスク",
                "next": "次のステップ|次の手順|次の一手",
                "files": "ファイル|関連ファイル",
                "context": "コンテキスト",
            },
        ),
    ),
    Language(
        name="Korean",
        days=Days(
            day_words={"그저께": -2, "그제": -2, "어제": -1, "오늘": 0, "내일": 1},
            latest_within="이번에|최근|요즘",
            happening_within="무슨 일",
        ),
        replies=Replies(
            assents=(
                "네|예|응|좋아|좋아요|좋습니다|좋네요|그래|그래요|그렇게 해주세요|진행해|진행해 주세요|진행하세요|동의"
                "|완벽해요|괜찮아요"
            ),
            refusals="죄송|도와드릴 수 없|유감",
            denials="いや|아니요?",
            go_on="계속|계속해|계속해줘|계속해 주세요|진행",
            all_options="둘 다|모두",
            ordinals={1: "첫 ?번째|첫째", 2: "두 ?번째|둘째", 3: "세 ?번째|셋째", 4: "네 ?번째|넷째", -1: "마지막"},
        ),
        sections=Sections(
            names={
                "goal": "목표|목적|과제",
                "constraints": "제약|제약 사항|제약사항|사용자 제약|규칙|요구사항",
                "decisions": "결정|결정 사항|결정사항",
                "progress": "진행|진행 상황|진행상황|현황",
                "done": "완료|완료됨|완료된 작업|한 일",
                "in progress": "진행 중|진행중|하는 중",
                "failed": "실패한 시도|실패|오류",
                "blocked": "차단됨|막힌 것",
                "asks": "미해결 질문|열린 질문|미해결 요청|질문",
                "todos": "할 일|남은 작업",
                "next": "다음 단계|다음",
                "files": "파일|관련 파일",
                "identifiers": "식별자",
                "context": "맥락|배경|사실|컨텍스트",
            },
        ),
    ),
    Language(
        name="several languages",
        sections=Sections(
            names={
                "goal": (
                    "but|objectif|objectifs|tâche|meta|metas|objetivo|objetivos|tarea|tarefa|obiettivo"
                    "|obiettivi|compito|doel"
                    "|doelen|doelstelling|taak|cel|cele|zadanie|hedef|hedefler|amaç|görev|mål"
                ),
                "constraints": (
                    "contraintes|contraintes de l utilisateur|règles|exigences|préférences|restricciones"
                    "|restricciones del usuario|reglas|requisitos|restrições|restrições do usuário|regras|vincoli"
                    "|vincoli dell utente|regole|requisiti|beperkingen|regels|eisen|ograniczenia|zasady|wymagania"
                    "|kısıtlamalar|kısıtlar|kurallar|begränsningar|regler|krav"
                ),
                "decisions": (
                    "décisions|décisions clés|décisions prises|decisiones|decisiones clave|decisões"
                    "|decisões importantes"
                    "|decisioni|decisioni chiave|beslissingen|besluiten|decyzje|kararlar|alınan kararlar|beslut"
                ),
                "progress": (
                    "progrès|avancement|état|progreso|estado|progresso|stato|voortgang|stand van zaken|postęp"
                    "|postępy|stan"
                    "|ilerleme|durum|framsteg"
                ),
                "done": (
                    "fait|terminé|accompli|réalisé|effectué|ce qui a été fait|hecho|completado|terminado"
                    "|realizado|feito"
                    "|concluído|completo|fatto|completato|concluso|gedaan|klaar|voltooid|afgerond|zrobione"
                    "|ukończone|wykonane"
                    "|yapılanlar|tamamlanan|tamamlananlar|bitti|klart|gjort|färdigt"
                ),
                "in progress": (
                    "en cours|travail en cours|en curso|en progreso|en proceso|em andamento|em curso"
                    "|em progresso|in corso"
                    "|in uitvoering|bezig|mee bezig|w toku|w trakcie|devam eden|devam edenler|sürüyor|pågår|pågående"
                ),
                "failed": (
                    "tentatives échouées|échecs|échoué|essais ratés|erreurs|problèmes|intentos fallidos|fallos|fallidos"
                    "|errores|problemas|tentativas falhas|tentativas fracassadas|tentativas falhadas|falhas|erros"
                    "|tentativi falliti|errori|fallimenti|mislukte pogingen|mislukt|fouten|nieudane próby"
                    "|błędy|niepowodzenia"
                    "|başarısız denemeler|hatalar|başarısız|misslyckade försök|misslyckat|fel"
                ),
                "blocked": (
                    "bloqué|bloquant|blocages|bloqueado|bloqueos|bloqueios|impedimentos|bloccato|blocchi|geblokkeerd"
                    "|zablokowane|blokady|engellenen|engeller|blockerat"
                ),
                "asks": (
                    "questions ouvertes|demandes en attente|en attente|questions en suspens|preguntas abiertas"
                    "|preguntas pendientes|pendientes|solicitudes pendientes|perguntas em aberto|perguntas abertas"
                    "|pedidos pendentes|pendências|domande aperte|richieste in sospeso|richieste aperte|open vragen"
                    "|openstaande vragen|otwarte pytania|pytania|açık sorular|sorular|bekleyenler|öppna frågor"
                ),
                "todos": (
                    "à faire|tâches restantes|reste à faire|por hacer|tareas pendientes|a fazer"
                    "|tarefas pendentes|da fare"
                    "|attività rimanenti|te doen|nog te doen|do zrobienia|pozostałe zadania|yapılacaklar"
                    "|kalan işler|att göra"
                ),
                "next": (
                    "prochaine étape|prochaines étapes|suite|étape suivante|siguiente paso|siguientes pasos"
                    "|próximo paso"
                    "|próximos pasos|próximo passo|próximos passos|prossimo passo|prossimi passi|passo successivo"
                    "|passi successivi|volgende stap|volgende stappen|następny krok|następne kroki"
                    "|kolejne kroki|kolejny krok"
                    "|sonraki adım|sonraki adımlar|nästa steg"
                ),
                "files": (
                    "fichiers|fichiers pertinents|archivos|archivos relevantes|ficheros|arquivos|arquivos relevantes"
                    "|ficheiros|file rilevanti|bestanden|relevante bestanden|pliki|istotne pliki|dosyalar"
                    "|ilgili dosyalar"
                    "|filer"
                ),
                "identifiers": (
                    "identifiants|identificadores|identificatori|identificatoren|identyfikatory|tanımlayıcılar"
                    "|identifierare"
                ),
                "context": (
                    "contexte|arrière plan|faits|contexte important|contexto|datos|antecedentes|hechos"
                    "|contexto crítico|fatos"
                    "|notas|contesto|fatti|note|achtergrond|feiten|tło|fakty|bağlam|gerçekler|notlar|bakgrund"
                    "|sammanhang"
                    "|fakta"
                ),
            },
        ),
    ),
)
