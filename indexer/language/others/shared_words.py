"""Words of which it is not told what language each is of: data alone."""

from indexer.language.base import Language, Sections

SHARED = Language(
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
)
